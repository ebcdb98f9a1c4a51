import { ApiError, address, api } from "../../api.js";
import { Curl } from "../../components/curl.js";
import { Empty } from "../../components/empty.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Page } from "../../components/page.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { number, seconds } from "../../format.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../live.js";
import { query, setQuery, to } from "../../router.js";
import { save } from "../../save.js";

/** @typedef {import("../../api.js").Schemas["UsageView"]} Line */

const GROUPS = ["database", "team", "plan", "region"];
const HOURS = 3600 * 1024 ** 3;

/** @param {Line} line */
const label = (line) => line.database_name ?? line.team_name ?? line.plan ?? line.region ?? "";
const LEAST = 0.001;
const stored = (/** @type {any} */ value) => {
  const hours = Number(value) / HOURS;
  return hours > 0 && hours < LEAST ? `< ${number(LEAST, 3)} GB h` : `${number(hours, 3)} GB h`;
};

/** @type {import("../../components/table.js").Column<Line>[]} */
const columns = [
  { label: "Of", class: "main", cell: (line) => (line.database_uuid ? html`<a href=${to(`/databases/${line.database_uuid}`)}>${label(line)}</a>` : label(line)) },
  { label: "Active", class: "number", cell: (line) => seconds(line.runtime_seconds) },
  { label: "Storage", class: "number", cell: (line) => stored(line.storage_byte_seconds) },
  { label: "Backups", class: "number", wide: true, cell: (line) => stored(line.backup_byte_seconds) },
  { label: "Until", class: "nowrap", wide: true, cell: (line) => html`<${Time} value=${line.ends_at} />${line.open ? " (still grows)" : ""}` },
];

/** The months that the ledger may have, the present one first. */
function months() {
  const now = new Date();
  return Array.from({ length: 13 }, (_, back) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7));
}

export default function Usage() {
  const asks = query();
  const month = months().find((one) => one === asks.month) ?? months()[0];
  const by = GROUPS.find((one) => one === asks.by) ?? GROUPS[0];
  const [year, at] = month.split("-").map(Number);
  const asked = {
    from: `${month}-01`,
    to: new Date(Date.UTC(year, at)).toISOString().slice(0, 10),
    group_by: by,
    granularity: "total",
  };
  const { data, error, reload } = useResource((signal) => api.get("/usage", { query: { ...asked, limit: 5000 }, signal }), [month, by], { every: 60_000 });
  const lines = data?.data ?? [];
  const total = (/** @type {"runtime_seconds" | "storage_byte_seconds"} */ name) => lines.reduce((sum, line) => sum + Number(line[name]), 0);
  return html`<${Page} title="Usage">
    <p>What databases used, to the second, from a ledger that is closed by the hour. Months are those of UTC.</p>
    <div class="filters">
      <${Field} label="Month" value=${month} onValue=${(/** @type {string} */ value) => setQuery({ month: value })} options=${months()} />
      <${Field} label="By" value=${by} onValue=${(/** @type {string} */ value) => setQuery({ by: value })} options=${GROUPS} />
    </div>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!data && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the ledger…</p>`}
    ${data && lines.length === 0 && html`<${Empty} title="Nothing was used"><p>Databases of that month show here from their first hour on.</p><//>`}
    ${lines.length > 0 &&
    html`<p>${data?.has_more ? `In the first ${number(lines.length)} lines (the download has all)` : "In all"}: ${seconds(total("runtime_seconds"))} active, ${stored(total("storage_byte_seconds"))} stored. Counted until <${Time} value=${data?.as_of} />.</p>
      <${Table} label="Usage" rows=${lines} id=${(/** @type {Line} */ line) => line.id} columns=${columns} />`}
    <${Download} asked=${asked} />
  <//>`;
}

/** @param {{ asked: import("../../api.js").Query }} props */
function Download({ asked }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const run = async () => {
    try {
      const answer = await fetch(address("/usage", { query: asked }), { headers: { Accept: "text/csv" }, credentials: "same-origin" });
      const text = await answer.text();
      if (!answer.ok) throw new ApiError(answer.status, JSON.parse(text), "");
      save([text], `usage-${asked.from}.csv`, "text/csv");
      setError(null);
    } catch (fault) {
      setError(fault);
    }
  };
  return html`
    <div class="buttons"><button type="button" onClick=${run}>Download as CSV</button></div>
    <${ErrorNote} error=${error} retry=${run} />
    <${Curl} call=${{ method: "GET", path: "/usage", query: asked }} />
  `;
}
