import { Action } from "../../components/action.js";
import { Amount } from "../../components/amount.js";
import { Copy } from "../../components/copy.js";
import { Editor } from "../../components/editor.js";
import { Time } from "../../components/time.js";
import { ENGINES, colouredAs } from "../../engines.js";
import { html } from "../../html.js";
import { navigate, to } from "../../router.js";
import { may, rolesFrom } from "../../session.js";
import { BlueprintPage } from "./frame.js";

/** @param {import("../../router.js").PageProps} props */
export default function ShowBlueprint({ params: { uuid } }) {
  return html`<${BlueprintPage} uuid=${uuid} actions=${actions}>
    ${(/** @type {any} */ blueprint) => html`
      ${blueprint.description && html`<p class="written">${blueprint.description}</p>`}
      <dl>
        <dt>Engines</dt>
        <dd>${blueprint.metadata?.dialects.map((/** @type {import("../../engines.js").Engine} */ one) => ENGINES[one]).join("; ")}</dd>
        <dt>Statements</dt>
        <dd>
          ${blueprint.metadata?.statement_count}
          ${blueprint.metadata?.statements_left_out > 0 && html`, of which ${blueprint.metadata.statements_left_out} are left out when it is applied`}
        </dd>
        <dt>Size</dt>
        <dd><${Amount} value=${blueprint.size_bytes} unit="bytes" /></dd>
        <dt>Version</dt>
        <dd>${blueprint.version}, of <${Time} value=${blueprint.updated_at} /></dd>
        ${blueprint.metadata?.extensions.length > 0 &&
        html`<dt>Extensions</dt><dd>${blueprint.metadata.extensions.join(", ")}</dd>`}
        ${blueprint.variables &&
        html`<dt>Variables</dt><dd>${Object.entries(blueprint.variables).map(([name, one]) => `${name} (${/** @type {any} */ (one).type})`).join(", ")}</dd>`}
      </dl>
      <${Editor} label=${`SQL of ${blueprint.name}`} value=${blueprint.sql_content} engine=${colouredAs(blueprint.metadata?.dialects)} readOnly />
      <p><${Copy} text=${blueprint.sql_content} what="the SQL" /></p>
    `}
  <//>`;
}

/** @param {any} blueprint */
function actions(blueprint) {
  if (blueprint.is_system_blueprint) return null;
  const allowed = may("member");
  const why = allowed ? undefined : `Only ${rolesFrom("member")} change blueprints.`;
  return html`
    ${allowed && html`<a class="button" href=${to(`/blueprints/${blueprint.uuid}/change`)}>Change</a>`}
    <${Action}
      label="Delete"
      title=${`Delete ${blueprint.name}`}
      confirm="Delete"
      danger
      disabled=${!allowed}
      why=${why}
      typed=${blueprint.name}
      call=${{ method: "DELETE", path: "/blueprints/{uuid}", params: { uuid: blueprint.uuid }, keyless: true }}
      onDone=${() => navigate("/blueprints", { replace: true })}
    >
      <p>Databases that it was applied to stay as they are. It can't be brought back.</p>
    <//>
  `;
}
