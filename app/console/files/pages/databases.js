import { api } from "../api.js";
import { Empty } from "../components/empty.js";
import { ErrorNote } from "../components/error-note.js";
import { Page } from "../components/page.js";
import { Status } from "../components/status.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { html } from "../html.js";
import { resource } from "../live.js";
import { to } from "../router.js";

/** @typedef {import("../api.js").Schemas["DatabaseView"]} Database */

export default function Databases() {
  const { data, error, reload } = resource((signal) => api.get("/databases", { query: { limit: 100 }, signal }), [], {
    every: 5000,
  });
  const create = html`<a class="button primary" href=${to("/databases/new")}>New database</a>`;
  if (data?.data.length === 0) {
    return html`<${Page} title="Databases">
      <${Empty} title="No databases yet" action=${create}>
        <p>A database is ready in seconds: an isolated PostgreSQL or MySQL with its own name, user, password and limits.</p>
      <//>
    <//>`;
  }
  return html`<${Page} title="Databases" actions=${create}>
    <${ErrorNote} error=${error} retry=${reload} />
    <${Table}
      label="Databases"
      rows=${data?.data ?? []}
      id=${(/** @type {Database} */ row) => row.uuid}
      columns=${[
        { label: "Name", class: "main", cell: (/** @type {Database} */ row) => html`<a href=${to(`/databases/${row.uuid}`)}>${row.name}</a>` },
        { label: "Status", cell: (/** @type {Database} */ row) => html`<${Status} value=${row.status} />` },
        { label: "Engine", wide: true, cell: (/** @type {Database} */ row) => row.db_type },
        { label: "Region", wide: true, cell: (/** @type {Database} */ row) => row.region },
        { label: "Made", wide: true, cell: (/** @type {Database} */ row) => html`<${Time} value=${row.created_at} relative />` },
      ]}
    />
  <//>`;
}
