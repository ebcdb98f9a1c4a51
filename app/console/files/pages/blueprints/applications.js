import { Listing } from "../../components/listing.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { to } from "../../router.js";
import { outcome } from "./application.js";
import { BlueprintPage } from "./frame.js";

/** @param {import("../../router.js").PageProps} props */
export default function Applications({ params: { uuid } }) {
  const list = useList("/blueprints/{uuid}/blueprint_applications", { params: { uuid }, every: 3000 });
  return html`<${BlueprintPage} uuid=${uuid}>
    ${() => html`
      <${Listing}
        list=${list}
        label="Applications"
        empty=${{
          title: "Not applied yet",
          action: html`<a class="button primary" href=${to(`/blueprints/${uuid}/run`)}>Try it</a>`,
          children: html`<p>Each dry run and each application is kept here, with its log.</p>`,
        }}
        columns=${[
          { label: "Asked for", cell: (/** @type {any} */ row) => html`<a href=${to(`/blueprints/${uuid}/applications/${row.id}`)}><${Time} value=${row.created_at} relative /></a>` },
          { label: "Database", class: "main", cell: (/** @type {any} */ row) => row.database_name },
          { label: "Outcome", cell: (/** @type {any} */ row) => html`<${Status} value=${row.status} tone=${row.is_dry_run && row.status === "rolled_back" ? "good" : undefined} label=${row.is_dry_run ? `dry run ${outcome(row).split(";")[0]}` : outcome(row)} />` },
          { label: "Version", wide: true, class: "number", cell: (/** @type {any} */ row) => row.blueprint_version },
          { label: "Statements", wide: true, class: "number", cell: (/** @type {any} */ row) => `${row.statements_succeeded} of ${row.statements_total}` },
        ]}
      />
    `}
  <//>`;
}
