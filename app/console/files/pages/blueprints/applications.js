import { api } from "../../api.js";
import { Empty } from "../../components/empty.js";
import { ErrorNote } from "../../components/error-note.js";
import { Status } from "../../components/status.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { html } from "../../html.js";
import { resource } from "../../live.js";
import { to } from "../../router.js";
import { useList } from "../lists.js";
import { outcome } from "./application.js";
import { BlueprintPage } from "./frame.js";

/** @param {import("../../router.js").PageProps} props */
export default function Applications({ params: { uuid } }) {
  const { rows, error, loading, reload, more } = useList("/blueprints/{uuid}/blueprint_applications", { params: { uuid } });
  const databases = resource((signal) => api.get("/databases", { query: { limit: 100 }, signal }));
  const named = (/** @type {string} */ one) => databases.data?.data.find((/** @type {any} */ row) => row.uuid === one)?.name ?? (databases.data ? one : "");
  return html`<${BlueprintPage} uuid=${uuid}>
    ${() => html`
      <${ErrorNote} error=${error} retry=${reload} />
      ${!loading && !error && rows.length === 0
        ? html`<${Empty} title="Not applied yet" action=${html`<a class="button primary" href=${to(`/blueprints/${uuid}/run`)}>Try it</a>`}>
            <p>Each dry run and each application is kept here, with its log.</p>
          <//>`
        : html`<${Table}
            label="Applications"
            rows=${rows}
            id=${(/** @type {any} */ row) => row.id}
            onEnd=${more}
            columns=${[
              { label: "Asked for", cell: (/** @type {any} */ row) => html`<a href=${to(`/blueprints/${uuid}/applications/${row.id}`)}><${Time} value=${row.created_at} relative /></a>` },
              { label: "Database", class: "main", cell: (/** @type {any} */ row) => named(row.database_uuid) },
              { label: "Outcome", cell: (/** @type {any} */ row) => html`<${Status} value=${row.status} tone=${row.is_dry_run && row.status === "rolled_back" ? "good" : undefined} label=${row.is_dry_run ? `dry run ${outcome(row).split(";")[0]}` : outcome(row)} />` },
              { label: "Version", wide: true, class: "number", cell: (/** @type {any} */ row) => row.blueprint_version },
              { label: "Statements", wide: true, class: "number", cell: (/** @type {any} */ row) => `${row.statements_succeeded} of ${row.statements_total}` },
            ]}
          />`}
    `}
  <//>`;
}
