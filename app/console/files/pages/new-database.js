import { announce } from "../announce.js";
import { api } from "../api.js";
import { Action, ActionForm } from "../components/action.js";
import { Curl } from "../components/curl.js";
import { ErrorNote } from "../components/error-note.js";
import { Field } from "../components/field.js";
import { labelsIn } from "../components/labels.js";
import { Page } from "../components/page.js";
import { Steps } from "../components/steps.js";
import { ENGINES, USUAL_ENGINE } from "../engines.js";
import { typedMoment } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { useOperation, useResource } from "../live.js";
import { navigate, setQuery, to } from "../router.js";
import { may, rolesFrom, session } from "../session.js";
import { Application } from "./blueprints/application.js";
import { BlueprintField, chosenBlueprint, shownBlueprint } from "./blueprints/choice.js";
import { readDatabase } from "./database/shell.js";

const CRUMBS = [{ path: "/databases", label: "Databases" }];
const PLANS = ["free", "launch", "grow", "pro"];
const NAME = "^[a-z0-9][a-z0-9\\-]{0,62}$";

/**
 * The form, and then the steps of its operation, whose id is in the address: to load the page again goes on with them.
 * @param {import("../router.js").PageProps} props
 */
export default function NewDatabase({ query }) {
  if (query.operation && query.database) {
    return html`<${Making} operation=${query.operation} database=${query.database} application=${query.application} />`;
  }
  if (!may("member")) {
    return html`<${Page} title="New database" crumbs=${CRUMBS}><p>In your teams ${rolesFrom("member")} may make databases.</p><//>`;
  }
  return html`<${Page} title="New database" crumbs=${CRUMBS}><${Form} /><//>`;
}

/** @param {any} answer of the create */
function follow(answer) {
  const uuid = answer.data.uuid;
  const application = answer.blueprint_application?.id;
  const done = answer.data.status === "active" && !application;
  if (done || !answer.operation) navigate(`/databases/${uuid}`, { replace: true });
  else setQuery({ operation: answer.operation.uuid, database: uuid, application: application ? String(application) : null });
}

function Form() {
  const types = useResource((signal) => api.get("/database_types", { signal }));
  const teams = (session.value?.teams ?? []).filter((team) => may("member", team.id));
  const [fields, setFields] = useState(
    /** @type {Record<string, any>} */ ({
      name: "",
      db_type: USUAL_ENGINE,
      region: "",
      plan: "free",
      team_id: String(teams[0]?.id ?? ""),
      labels: "",
      storage_hard_limit_gb: "",
      connection_hard_limit: "",
      expires_at: "",
      deletion_protection: false,
    }),
  );
  const [blueprint, setBlueprint] = useState(/** @type {any} */ (null));
  const [texts, setTexts] = useState(/** @type {Record<string, string>} */ ({}));
  const field = (/** @type {string} */ name) => ({
    value: fields[name],
    onValue: (/** @type {any} */ value) => setFields((was) => ({ ...was, [name]: value })),
  });
  const engines = (types.data?.data ?? []).filter((engine) => engine.is_provisionable);
  const engine = engines.find((one) => one.value === fields.db_type);
  const regions = engine?.regions ?? [];
  const region = regions.some((one) => one.code === fields.region) ? fields.region : (regions[0]?.code ?? "");
  const call = (/** @type {object} */ begun) => ({ method: "POST", path: "/databases", body: { ...body({ ...fields, region }), ...begun } });
  const choose = (/** @type {any} */ one) => {
    setBlueprint(one);
    setTexts({});
  };

  return html`
    <${ErrorNote} error=${types.error} retry=${types.reload} />
    <${ActionForm} call=${call(chosenBlueprint(blueprint, texts))} shown=${call(shownBlueprint(blueprint, texts))} submit="Create database" ready=${fields.name !== ""} onDone=${follow}>
      ${(/** @type {Record<string, string>} */ errors) => html`
        <${Field}
          label="Name"
          ...${field("name")}
          error=${errors.name}
          hint="Lowercase letters, digits and hyphens."
          required
          maxlength="63"
          pattern=${NAME}
          autocomplete="off"
          spellcheck=${false}
        />
        <${Field}
          label="Engine"
          ...${field("db_type")}
          onValue=${(/** @type {string} */ engine) => {
            field("db_type").onValue(engine);
            choose(null);
          }}
          error=${errors.db_type}
          options=${engines.length > 0
            ? engines.map((one) => ({ value: one.value, label: one.label, disabled: !one.is_available }))
            : [{ value: USUAL_ENGINE, label: ENGINES[USUAL_ENGINE] }]}
        />
        <div class="pair">
          <${Field}
            label="Region"
            ...${field("region")}
            value=${region}
            error=${errors.region}
            options=${regions.map((one) => ({ value: one.code, label: one.label, disabled: !one.is_available }))}
          />
          <${Field} label="Plan" ...${field("plan")} error=${errors.plan} options=${PLANS} />
        </div>
        ${teams.length > 1 &&
        html`<${Field}
          label="Team"
          ...${field("team_id")}
          error=${errors.team_id}
          options=${teams.map((team) => ({ value: String(team.id), label: team.name }))}
        />`}
        <${BlueprintField}
          engine=${fields.db_type}
          blueprint=${blueprint}
          onBlueprint=${choose}
          texts=${texts}
          onTexts=${setTexts}
          errors=${errors}
        />
        <details>
          <summary>Limits, labels, expiry, protection</summary>
          <div class="pair">
            <${Field}
              label="Storage limit in GB"
              ...${field("storage_hard_limit_gb")}
              type="number"
              min="0"
              step="any"
              error=${errors.storage_hard_limit_gb}
              hint="The plan's unless given."
            />
            <${Field}
              label="Connection limit"
              ...${field("connection_hard_limit")}
              type="number"
              min="1"
              step="1"
              error=${errors.connection_hard_limit}
              hint="The plan's unless given."
            />
          </div>
          <${Field}
            label="Labels"
            ...${field("labels")}
            rows="3"
            error=${errors.labels}
            hint="One a line, as key:value."
            spellcheck=${false}
          />
          <${Field}
            label="Expires at"
            ...${field("expires_at")}
            type="datetime-local"
            error=${errors.expires_at}
            hint="In your time zone. Then it is deleted; never unless given."
          />
          <${Field}
            label="Protect from deletion"
            ...${field("deletion_protection")}
            type="checkbox"
            error=${errors.deletion_protection}
          />
        </details>
      `}
    <//>
  `;
}

/** Without what is left to the API. @param {Record<string, any>} fields */
function body({ labels, storage_hard_limit_gb, connection_hard_limit, expires_at, deletion_protection, team_id, ...rest }) {
  const named = labelsIn(labels);
  return {
    ...rest,
    region: rest.region || undefined,
    team_id: team_id ? Number(team_id) : undefined,
    labels: Object.keys(named).length > 0 ? named : undefined,
    storage_hard_limit_gb: storage_hard_limit_gb ? Number(storage_hard_limit_gb) : undefined,
    connection_hard_limit: connection_hard_limit ? Number(connection_hard_limit) : undefined,
    expires_at: typedMoment(expires_at) ?? undefined,
    deletion_protection: deletion_protection || undefined,
  };
}

/** @param {{ operation: string, database: string, application?: string }} props */
function Making({ operation: uuid, database, application }) {
  const operation = useOperation(uuid);
  const { data, error } = useResource((signal) => readDatabase(database, signal), [database]);
  const name = data?.name ?? "New database";
  const call = { method: "GET", path: "/operations/{uuid}/events", params: { uuid } };
  const made = operation?.status === "succeeded";
  const [applied, setApplied] = useState(!application);
  useEffect(() => {
    if (!made) return;
    announce(`${name} is active.`);
    if (applied) navigate(`/databases/${database}`, { replace: true });
  }, [made, applied]);
  return html`
    <${Page} title=${`Making ${name}`} crumbs=${CRUMBS}>
      <${ErrorNote} error=${operation ? null : error} />
      <${Steps} operation=${operation} />
      ${made && application && html`<${Application} id=${application} onEnd=${(/** @type {any} */ one) => setApplied(one.status === "completed")} />`}
      <div class="buttons">
        ${operation?.status === "failed" &&
        html`<${Action}
          label="Try again"
          call=${{ method: "POST", path: "/operations/{uuid}/retries", params: { uuid } }}
          onDone=${(/** @type {any} */ answer) => setQuery({ operation: answer.data?.uuid ?? uuid })}
        ><p>The operation goes on where it failed.</p><//>`}
        ${operation?.cancellable &&
        html`<${Action}
          label="Cancel"
          title="Cancel the creation"
          confirm="Cancel the creation"
          danger
          call=${{ method: "POST", path: "/operations/{uuid}/cancellations", params: { uuid } }}
        ><p>What was made of ${name} is taken away.</p><//>`}
        <a class="button" href=${to(`/operations/${uuid}`)}>The operation</a>
        ${made && html`<a class="button" href=${to(`/databases/${database}`)}>The database</a>`}
      </div>
      <${Curl} call=${call} />
    <//>
  `;
}
