import { api } from "../../api.js";
import { Listing } from "../../components/listing.js";
import { OnlyFor } from "../../components/only-for.js";
import { Page } from "../../components/page.js";
import { Time } from "../../components/time.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { to } from "../../router.js";
import { may } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["BlueprintView"]} Blueprint */

export default function Blueprints() {
  const list = useList("/blueprints");
  const create = may("member") && html`<a class="button primary" href=${to("/blueprints/new")}>New blueprint</a>`;
  return html`<${Page} title="Blueprints" actions=${create}>
    <${OnlyFor} what="write blueprints" />
    <${Listing}
      list=${list}
      label="Blueprints"
      empty=${{
        title: "No blueprints yet",
        children: html`<p>
          A blueprint is SQL under a name: tables, indexes, rows. Write one, try it in a dry run, and apply it to any of
          your databases, with values of its variables.
        </p>`,
      }}
      columns=${[
        {
          label: "Name",
          class: "main",
          cell: (/** @type {Blueprint} */ row) => html`<a href=${to(`/blueprints/${row.uuid}`)}>${row.name}</a>${" "}
            ${row.is_system_blueprint && html`<span class="label">everyone's</span>`}`,
        },
        { label: "Engines", cell: (/** @type {Blueprint} */ row) => row.metadata?.dialects.join(", ") },
        { label: "Statements", wide: true, class: "number", cell: (/** @type {Blueprint} */ row) => row.metadata?.statement_count },
        { label: "Version", wide: true, class: "number", cell: (/** @type {Blueprint} */ row) => row.version },
        { label: "Changed", wide: true, cell: (/** @type {Blueprint} */ row) => html`<${Time} value=${row.updated_at} relative />` },
      ]}
    />
  <//>`;
}
