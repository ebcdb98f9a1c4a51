// A blueprint is written: its SQL with what is wrong with it, and its variables.
import { api } from "../../api.js";
import { ActionForm } from "../../components/action.js";
import { Editor } from "../../components/editor.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { OnlyFor } from "../../components/only-for.js";
import { Page } from "../../components/page.js";
import { useDraft } from "../../drafts.js";
import { ENGINE_OPTIONS, colouredAs } from "../../engines.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../live.js";
import { navigate } from "../../router.js";
import { may } from "../../session.js";
import { Verdict, useValidation } from "./validation.js";
import { Declarations, declared, declarable } from "./variables.js";

const CRUMBS = [{ path: "/blueprints", label: "Blueprints" }];

/** @param {import("../../router.js").PageProps} props */
export default function WriteBlueprint({ params: { uuid } }) {
  const { data, error, reload } = useResource(
    async (signal) => (uuid ? api.get("/blueprints/{uuid}", { params: { uuid }, signal, exact: true }) : { data: null }),
    [uuid],
  );
  if (!may("member")) {
    return html`<${Page} title=${uuid ? "Change a blueprint" : "New blueprint"} crumbs=${CRUMBS}><${OnlyFor} what="write blueprints" /><//>`;
  }
  if (uuid && !data) {
    return html`<${Page} title="Change a blueprint" crumbs=${CRUMBS}>
      <${ErrorNote} error=${error} retry=${reload} />
      ${!error && html`<p class="page-loading" aria-busy="true"><span class="spinner"></span> Reading the blueprint…</p>`}
    <//>`;
  }
  return html`<${Form} blueprint=${data?.data} />`;
}

/** @param {{ blueprint: any }} props */
function Form({ blueprint }) {
  const draft = useDraft(blueprint ? `blueprint ${blueprint.uuid}` : "new blueprint", {
    name: blueprint?.name ?? "",
    description: blueprint?.description ?? "",
    sql: blueprint?.sql_content ?? "",
    variables: declarable(blueprint?.variables),
    engine: colouredAs(blueprint?.metadata?.dialects),
  });
  const { name, description, sql, variables, engine } = draft.fields;
  const [go, setGo] = useState(/** @type {any} */ (null));
  const definitions = declared(variables);
  const validation = useValidation(sql, definitions);
  const body = { name, description: description || null, sql_content: sql, variables: definitions };
  const call = blueprint
    ? { method: "PATCH", path: "/blueprints/{uuid}", params: { uuid: blueprint.uuid }, body, keyless: true }
    : { method: "POST", path: "/blueprints", body };
  const crumbs = blueprint ? [...CRUMBS, { path: `/blueprints/${blueprint.uuid}`, label: blueprint.name }] : CRUMBS;
  const ready = name !== "" && sql.trim() !== "" && validation.answer?.valid !== false;
  return html`<${Page} title=${blueprint ? `Change ${blueprint.name}` : "New blueprint"} crumbs=${crumbs}>
    <div class="writing">
      ${draft.found &&
      html`<div class="buttons" role="group" aria-label="Draft">
        <span>You wrote this before, and it isn't saved.</span>
        <button type="button" class="small" onClick=${draft.discard}>Discard it</button>
      </div>`}
      <${ActionForm}
        call=${call}
        submit=${blueprint ? "Save" : "Create"}
        ready=${ready}
        onAnswer=${() => draft.saved(draft.fields)}
        onDone=${(/** @type {any} */ answer) => navigate(`/blueprints/${answer.data.uuid}`)}
      >
        ${(/** @type {Record<string, string>} */ errors) => html`
          <${Field} label="Name" value=${name} onValue=${(/** @type {string} */ name) => draft.change({ name })} error=${errors.name} maxlength="255" autocomplete="off" required />
          <${Field} label="Description" value=${description} onValue=${(/** @type {string} */ description) => draft.change({ description })} error=${errors.description} rows="2" />
          <${Field}
            label="Colours for"
            value=${engine}
            onValue=${(/** @type {import("../../engines.js").Engine} */ engine) => draft.change({ engine })}
            options=${ENGINE_OPTIONS}
            hint="Only the colours: which engines take the SQL is found out as you write."
          />
          <div class="field">
            <span class="field-label">SQL</span>
            <${Editor}
              key=${draft.round}
              label="SQL"
              value=${sql}
              onValue=${(/** @type {string} */ text) => draft.change({ sql: text })}
              engine=${engine}
              marks=${validation.marks}
              go=${go}
            />
            <p class="hint">Tab leaves the editor. A variable stands in the SQL as a word of its own: {{name}}.</p>
            <${Verdict} validation=${validation} onGo=${(/** @type {any} */ mark) => setGo({ ...mark })} />
          </div>
          <${Declarations}
            variables=${variables}
            onVariables=${(/** @type {import("./variables.js").Row[]} */ rows) => draft.change({ variables: rows })}
            found=${Object.keys(validation.answer?.manifest.variables ?? {})}
            error=${Object.entries(errors).find(([field]) => field.startsWith("variables"))?.[1]}
          />
        `}
      <//>
    </div>
  <//>`;
}
