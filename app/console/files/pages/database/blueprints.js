import { api } from "../../api.js";
import { Empty } from "../../components/empty.js";
import { ErrorNote } from "../../components/error-note.js";
import { Status } from "../../components/status.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { seconds } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { query, setQuery, to } from "../../router.js";
import { DatabasePage } from "./shell.js";

/** @typedef {import("./shell.js").Schemas} Schemas */
/** @typedef {Schemas["ApplicationView"]} Application */

const EVERY = 2000;

/** @param {{ params: { uuid: string } }} props */
export default function Applications({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid} part="/blueprints">
    ${() => html`<${List} uuid=${uuid} />`}
  <//>`;
}

/** @param {{ uuid: string }} props */
function List({ uuid }) {
  const { rows, error, reload, complete, more, inSight } = useList("/databases/{uuid}/blueprint_applications", { params: { uuid }, every: 3000 });
  const names = useResource(async (signal) => {
    /** @type {Record<string, string>} */ const found = {};
    for await (const page of api.pages("/blueprints", { signal })) for (const one of page) found[one.uuid] = one.name;
    return found;
  });
  const chosen = query().application;
  const all = /** @type {Application[]} */ (rows ?? []);
  return html`
    <${ErrorNote} error=${error} retry=${reload} />
    ${!rows && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the applications…</p>`}
    ${rows && all.length === 0
      ? html`<${Empty} title="No blueprint has been applied" action=${html`<a class="button primary" href=${to("/blueprints")}>Blueprints</a>`}>
          <p>A blueprint is SQL that is saved, checked, and applied to any database: tables, rows, rights.</p>
        <//>`
      : html`
          <p><a href=${to("/blueprints")}>Apply a blueprint</a></p>
          <${Table}
            label="Applications of blueprints"
            rows=${all}
            onEnd=${complete ? undefined : more}
            onRange=${inSight}
            id=${(/** @type {Application} */ one) => one.id}
            columns=${[
              { label: "Blueprint", class: "main", cell: (/** @type {Application} */ one) => html`<a href=${to(`/blueprints/${one.blueprint_uuid}`)}>${names.data?.[one.blueprint_uuid] ?? "Blueprint"}</a> <span class="quiet">version ${one.blueprint_version}</span> <div class="second narrow"><${Time} value=${one.created_at} relative /></div>` },
              { label: "Status", cell: (/** @type {Application} */ one) => html`<${Status} value=${one.status} tone=${one.status === "rolled_back" ? "idle" : undefined} />` },
              { label: "Statements", class: "number nowrap", wide: true, cell: (/** @type {Application} */ one) => `${one.statements_succeeded} of ${one.statements_total}` },
              { label: "Dry run", wide: true, cell: (/** @type {Application} */ one) => (one.is_dry_run ? "yes" : "") },
              { label: "Asked for", wide: true, class: "nowrap", cell: (/** @type {Application} */ one) => html`<${Time} value=${one.created_at} relative />` },
              { label: "Log", cell: (/** @type {Application} */ one) => html`<button type="button" class="small" aria-expanded=${String(one.id) === chosen} onClick=${() => setQuery({ application: String(one.id) === chosen ? null : String(one.id) })}>Log</button>` },
            ]}
          />
        `}
    ${chosen && html`<${Log} key=${chosen} id=${chosen} uuid=${uuid} />`}
  `;
}

/** @param {{ id: string, uuid: string }} props */
function Log({ id, uuid }) {
  const [every, setEvery] = useState(EVERY);
  const { data, error } = useResource((signal) => api.get("/blueprint_applications/{id}", { params: { id }, signal, exact: true }), [id], { every });
  const one = data?.data;
  const ended = Boolean(one?.completed_at);
  useEffect(() => setEvery(ended ? 0 : EVERY), [ended]);
  if (!one || one.database_uuid !== uuid) return html`<${ErrorNote} error=${error} />`;
  const values = Object.entries(one.variable_values ?? {});
  return html`<section class="panel" aria-labelledby="log">
    <h2 id="log">Log of application ${one.id}</h2>
    <p>
      <${Status} value=${one.status} tone=${one.status === "rolled_back" ? "idle" : undefined} />${" "}
      ${one.total_duration_ms !== null && html`<span class="quiet">${seconds(one.total_duration_ms / 1000)}</span>`}
    </p>
    ${one.error_message && html`<p class="reason">${one.error_message}</p>`}
    ${values.length > 0 && html`<dl class="facts">${values.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd><code>${String(value)}</code></dd>`)}</dl>`}
    <ol class="log">
      ${(one.execution_log ?? []).map(
        (/** @type {any} */ entry) => html`<li key=${entry.index}>
          <${Status} value=${entry.status} tone=${entry.status === "rolled_back" ? "idle" : undefined} />${" "}
          <span class="quiet">line ${entry.line}, ${entry.kind}${entry.duration_ms !== null ? `, ${seconds(entry.duration_ms / 1000)}` : ""}${entry.rows !== null ? `, ${entry.rows} rows` : ""}</span>
          <pre tabindex="0">${entry.sql}</pre>
          ${entry.error && html`<p class="reason"><code>${entry.error.code}</code> ${entry.error.message}</p>`}
          ${entry.note && html`<p class="quiet">${entry.note}</p>`}
        </li>`,
      )}
    </ol>
    ${one.sql_content && html`<details><summary>The whole script</summary><pre tabindex="0">${one.sql_content}</pre></details>`}
  </section>`;
}
