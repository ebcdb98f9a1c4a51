// Operations, newest first, with filters: of one database, or of all that the person sees.
import { api } from "../api.js";
import { Empty } from "../components/empty.js";
import { ErrorNote } from "../components/error-note.js";
import { Field } from "../components/field.js";
import { Status } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { seconds } from "../format.js";
import { html, useState } from "../html.js";
import { resource } from "../live.js";
import { query, setQuery, to } from "../router.js";

/** @typedef {import("../api.js").Schemas["OperationView"]} Operation */

const TYPES = ["create", "delete", "undelete", "backup", "restore", "clone", "rotate", "limits", "pause", "resume", "apply_blueprint"];
const STATUSES = ["pending", "running", "waiting", "succeeded", "failed", "cancelled"];
const PAGE = 100;
const choices = (/** @type {string[]} */ all) => [{ value: "", label: "All" }, ...all.map((value) => ({ value, label: value.replaceAll("_", " ") }))];

/** @param {{ label: string, database?: string }} props */
export function OperationTable({ label, database }) {
  const { type = "", status = "" } = query();
  const [older, setOlder] = useState(/** @type {Operation[]} */ ([]));
  const filters = { database_uuid: database, type, status };
  const { data, error, reload } = resource(
    (signal) => api.get("/operations", { query: { ...filters, limit: PAGE }, signal }),
    [database, type, status],
    { every: 3000 },
  );
  const newest = /** @type {Operation[]} */ (data?.data ?? []);
  const known = new Set(newest.map((one) => one.uuid));
  const rows = [...newest, ...older.filter((one) => !known.has(one.uuid))];
  const [more, setMore] = useState(true);
  const filter = (/** @type {object} */ change) => {
    setOlder([]);
    setMore(true);
    setQuery(/** @type {any} */ (change));
  };
  const readOlder = async () => {
    if (!data?.has_more || !more) return;
    setMore(false);
    const next = await api.get("/operations", { query: { ...filters, limit: PAGE, starting_after: rows.at(-1)?.uuid } });
    setOlder([...older, ...next.data]);
    setMore(next.has_more);
  };
  return html`
    <div class="filters">
      <${Field} label="Type" value=${type} onValue=${(/** @type {string} */ value) => filter({ type: value })} options=${choices(TYPES)} />
      <${Field} label="Status" value=${status} onValue=${(/** @type {string} */ value) => filter({ status: value })} options=${choices(STATUSES)} />
    </div>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!data && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the operations…</p>`}
    ${data && rows.length === 0
      ? html`<${Empty} title="No operations"><p>Every change that takes time is one, with its steps: none is like this.</p><//>`
      : html`<${Table}
          label=${label}
          rows=${rows}
          id=${(/** @type {Operation} */ one) => one.uuid}
          onEnd=${readOlder}
          columns=${[
            { label: "Operation", class: "nowrap", cell: (/** @type {Operation} */ one) => html`<a href=${to(`/operations/${one.uuid}`)}>${one.type.replaceAll("_", " ")}</a>` },
            { label: "Status", cell: (/** @type {Operation} */ one) => html`<${Status} value=${one.status} />` },
            { label: "Why", class: "main", wide: true, cell: (/** @type {Operation} */ one) => one.reason?.message ?? "" },
            ...(database ? [] : [{ label: "Database", cell: (/** @type {Operation} */ one) => html`<a href=${to(`/databases/${one.database_uuid}`)}><code>${one.database_uuid.slice(0, 8)}</code></a>` }]),
            { label: "Took", class: "number nowrap", wide: true, cell: took },
            { label: "Begun", class: "nowrap", cell: (/** @type {Operation} */ one) => html`<${Time} value=${one.created_at} relative />` },
          ]}
        />`}
  `;
}

/** @param {Operation} operation */
function took({ started_at, finished_at }) {
  if (!started_at || !finished_at) return "";
  return seconds((Date.parse(finished_at) - Date.parse(started_at)) / 1000);
}
