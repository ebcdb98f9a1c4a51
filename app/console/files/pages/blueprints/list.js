import { api } from "../../api.js";
import { Empty } from "../../components/empty.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { html } from "../../html.js";
import { to } from "../../router.js";
import { may } from "../../session.js";
import { useList } from "../lists.js";

/** @typedef {import("../../api.js").Schemas["BlueprintView"]} Blueprint */

export default function Blueprints() {
  const { rows, error, loading, reload, more } = useList("/blueprints");
  const create = may("member") && html`<a class="button primary" href=${to("/blueprints/new")}>New blueprint</a>`;
  return html`<${Page} title="Blueprints" actions=${create}>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!loading && !error && rows.length === 0
      ? html`<${Empty} title="No blueprints yet">
          <p>A blueprint is SQL under a name: tables, indexes, rows. Write one, try it in a dry run, and apply it to any of
          your databases, with values of its variables.</p>
        <//>`
      : html`<${Table}
          label="Blueprints"
          rows=${rows}
          id=${(/** @type {Blueprint} */ row) => row.uuid}
          onEnd=${more}
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
        />`}
  <//>`;
}
