import { Action } from "../components/action.js";
import { Listing } from "../components/listing.js";
import { Page } from "../components/page.js";
import { Time } from "../components/time.js";
import { html } from "../html.js";
import { useList } from "../lists.js";
import { navigate, to } from "../router.js";
import { may, rolesFrom } from "../session.js";

/** @typedef {import("../api.js").Schemas["DeletedDatabaseView"]} Deleted */

export default function DeletedDatabases() {
  const list = useList("/deleted_databases", { every: 10_000 });
  return html`<${Page} title="Deleted databases" crumbs=${[{ path: "/databases", label: "Databases" }]}>
    <p>Until its data is destroyed, a deleted database can come back with its name, data, user and password.</p>
    <${Listing}
      list=${list}
      label="Deleted databases"
      empty=${{ title: "Nothing to bring back", children: html`<p>What you delete is here for its grace period.</p>` }}
      columns=${[
        { label: "Name", class: "main", cell: (/** @type {Deleted} */ one) => one.name },
        { label: "Engine", wide: true, cell: (/** @type {Deleted} */ one) => one.db_type },
        { label: "Deleted", class: "nowrap", wide: true, cell: (/** @type {Deleted} */ one) => html`<${Time} value=${one.deleted_at} relative />` },
        { label: "Data is destroyed", class: "nowrap", cell: (/** @type {Deleted} */ one) => html`<${Time} value=${one.destroy_scheduled_at} relative />` },
        { label: "Final backup", class: "nowrap", wide: true, cell: (/** @type {Deleted} */ one) => (one.final_backup_uuid ? html`<a href=${to("/backups")}>taken</a>` : html`<span class="quiet">not yet</span>`) },
        {
          label: "Actions",
          cell: (/** @type {Deleted} */ one) => html`<${Action}
            label="Undelete"
            title=${`Undelete ${one.name}`}
            small
            call=${{ method: "POST", path: "/databases/{uuid}/undeletions", params: { uuid: one.uuid } }}
            onDone=${() => navigate(`/databases/${one.uuid}`)}
            ...${may("member", one.team_id) ? {} : { disabled: true, why: `Only ${rolesFrom("member")} of the team may.` }}
          >
            <p>It comes back as it was, and takes connections again.</p>
          <//>`,
        },
      ]}
    />
    <p><a href=${to("/databases")}>All databases</a></p>
  <//>`;
}
