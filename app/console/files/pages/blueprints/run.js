// A blueprint is tried on a database, and applied to it.
import { useAction } from "../../action.js";
import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { Curl } from "../../components/curl.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { OnlyFor } from "../../components/only-for.js";
import { html, useState } from "../../html.js";
import { to } from "../../router.js";
import { may, rolesFrom } from "../../session.js";
import { DatabaseField } from "../database-field.js";
import { Application } from "./application.js";
import { BlueprintPage } from "./frame.js";
import { Values, valuesOf } from "./variables.js";

/** @param {import("../../router.js").PageProps} props */
export default function RunBlueprint({ params: { uuid }, query }) {
  return html`<${BlueprintPage} uuid=${uuid}>
    ${(/** @type {any} */ blueprint) => html`<${Run} blueprint=${blueprint} first=${query.database} />`}
  <//>`;
}

/** @param {{ blueprint: any, first?: string }} props */
function Run({ blueprint, first }) {
  const [database, setDatabase] = useState(first ?? "");
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const [id, setId] = useState(/** @type {number | null} */ (null));
  const [shown, setShown] = useState(0);
  const values = valuesOf(blueprint.variables, texts);
  const call = (/** @type {boolean} */ dry, /** @type {any} */ variables = values) => ({
    method: "POST",
    path: "/databases/{uuid}/blueprint_applications",
    params: { uuid: database },
    body: { blueprint_uuid: blueprint.uuid, variables, dry_run: dry, wait: false },
  });
  const done = (/** @type {any} */ answer) => {
    setId(answer.data.id);
    setShown((one) => one + 1);
  };
  const allowed = may("member");
  const trial = useAction(/** @type {any} */ (call(true)), done);
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (database && allowed) trial.run();
  };
  const secrets = Object.keys(values).filter((name) => blueprint.variables?.[name]?.secret);
  const masked = { ...values, ...Object.fromEntries(secrets.map((name) => [name, "…"])) };
  return html`
    <div class="panels">
      <form class="panel" onSubmit=${submit} aria-label="Try and apply">
        <${DatabaseField} value=${database} onValue=${setDatabase} engines=${blueprint.metadata?.dialects} error=${trial.error?.fields?.blueprint_uuid} />
        <${Values} definitions=${blueprint.variables} texts=${texts} onTexts=${setTexts} errors=${trial.error?.fields ?? {}} />
        <${ErrorNote} error=${trial.error} />
        <${OnlyFor} what="try and apply blueprints" />
        <div class="buttons">
          <button class="primary" disabled=${trial.running || !database || !allowed}>
            ${trial.running && html`<span class="spinner"></span>`} Dry run
          </button>
          <${Action}
            label="Apply"
            title=${`Apply ${blueprint.name}`}
            confirm="Apply"
            disabled=${!database || !allowed}
            why=${allowed ? undefined : `Only ${rolesFrom("member")} apply blueprints.`}
            call=${call(false)}
            shown=${call(false, masked)}
            onDone=${done}
          >
            <p>Its statements run in the database as its own user. On PostgreSQL a failure leaves nothing but what setval has
            set; MySQL and MariaDB keep what ran before it.</p>
          <//>
        </div>
        <p class="hint">A dry run changes nothing: PostgreSQL leaves out setval and rolls back the rest, MySQL and MariaDB run it on a copy without rows.</p>
        <${Curl} call=${call(true, masked)} idempotencyKey=${trial.key} />
      </form>
      <div>
        ${id === null
          ? html`<p class="quiet">What each statement does is shown here while it runs.</p>`
          : html`<${Application} key=${`${id}-${shown}`} id=${id} blueprint=${blueprint.uuid} />`}
      </div>
    </div>
  `;
}
