import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { Amount } from "../../components/amount.js";
import { Copy } from "../../components/copy.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Labels, labelsIn } from "../../components/labels.js";
import { Time } from "../../components/time.js";
import { ENGINES } from "../../engines.js";
import { bytes, seconds, typedMoment } from "../../format.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../live.js";
import { navigate, to } from "../../router.js";
import { may } from "../../session.js";
import { DatabasePage, RoleNote, allowed } from "./shell.js";
import { CloneFields } from "./fields.js";

/** @typedef {import("./shell.js").Database} Database */
/** @typedef {{ database: Database, reload: () => void }} Props */

const GB = 2 ** 30;

/** @param {{ params: { uuid: string } }} props */
export default function Overview({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid}>
    ${(/** @type {Database} */ database, /** @type {() => void} */ reload) => html`
      <div class="panels">
        <${Facts} database=${database} reload=${reload} />
        <${Limits} database=${database} reload=${reload} />
      </div>
      <${Changes} database=${database} reload=${reload} />
    `}
  <//>`;
}

/** @param {Props} props */
function Facts({ database }) {
  const labelled = Object.keys(database.labels).length > 0;
  return html`<section class="panel" aria-labelledby="facts">
    <h2 id="facts">What it is</h2>
    <dl class="facts">
      <dt>Engine</dt><dd>${ENGINES[database.db_type]}</dd>
      <dt>Region</dt><dd>${database.region}</dd>
      <dt>Plan</dt><dd>${database.plan}</dd>
      <dt>Team</dt><dd>${database.team_name}</dd>
      <dt>Address</dt><dd><code>${database.host}:${database.port}</code> <a href=${to(`/databases/${database.uuid}/connect`)}>Connect</a></dd>
      <dt>UUID</dt><dd><code>${database.uuid}</code> <${Copy} text=${database.uuid} what="the UUID" /></dd>
      <dt>Labels</dt>
      <dd>${labelled ? html`<${Labels} labels=${database.labels} />` : html`<span class="quiet">none</span>`}</dd>
      <dt>Protected</dt><dd>${database.deletion_protection ? "yes: it can't be deleted" : "no"}</dd>
      <dt>Expires</dt><dd><${Time} value=${database.expires_at} /></dd>
      <dt>Created</dt><dd><${Time} value=${database.created_at} /></dd>
      <dt>Changed</dt><dd><${Time} value=${database.updated_at} relative /></dd>
    </dl>
  </section>`;
}

/** @param {Props} props */
function Limits({ database, reload }) {
  const { data, error, reload: again } = useResource(
    (signal) =>
      api.get("/databases/{uuid}/metrics", {
        params: { uuid: database.uuid },
        query: { names: "storage_bytes,connections", from: new Date(Date.now() - 3600_000).toISOString() },
        signal,
      }),
    [database.uuid],
    { every: 30_000 },
  );
  const latest = (/** @type {string} */ name) =>
    data?.data.series.find((one) => one.name === name)?.points.at(-1)?.[1];
  const { limits, quotas } = database;
  return html`<section class="panel" aria-labelledby="limits">
    <h2 id="limits">Limits, and what is used</h2>
    <dl class="facts">
      <dt>Storage</dt>
      <dd><${Amount} value=${latest("storage_bytes")} unit="bytes" of=${limits.storage_hard_limit_gb * GB} label="Storage used" /></dd>
      <dt>Connections</dt>
      <dd><${Amount} value=${latest("connections")} of=${limits.connection_hard_limit} label="Connections used" /></dd>
      <dt>Limits</dt>
      <dd>${bytes(limits.storage_hard_limit_gb * GB)}, ${limits.connection_hard_limit} connections${database.connections_limited_to
        ? `, ${database.connections_limited_to} for now: its host is short of them`
        : ""}</dd>
      <dt>Warning at</dt><dd>${limits.warning_threshold_pct} %</dd>
      <dt>Own limits</dt>
      <dd>${Object.values(quotas).some((one) => one !== null) ? "some are this database's own" : "none: all are the plan's"}</dd>
    </dl>
    <${ErrorNote} error=${error} retry=${again} />
    <p class="quiet">${data || !error ? usedWhen(data?.data) : ""} <a href=${to(`/databases/${database.uuid}/charts`)}>Charts</a></p>
    <${LimitsAction} database=${database} reload=${reload} />
  </section>`;
}

/** @param {any} metrics */
function usedWhen(metrics) {
  if (!metrics) return "Reading what is used…";
  if (metrics.stale_seconds === null || metrics.series.every((/** @type {any} */ one) => one.points.length === 0)) {
    return "Not measured yet: the first measurement comes within a minute or two.";
  }
  return `Measured ${seconds(metrics.stale_seconds)} ago.`;
}

/** @param {Props} props */
function LimitsAction({ database, reload }) {
  const [before, setBefore] = useState(/** @type {Record<string, string>} */ ({}));
  const [fields, setFields] = useState(before);
  const names = /** @type {const} */ (["storage_hard_limit_gb", "connection_hard_limit", "warning_threshold_pct"]);
  const labels = ["Storage in GB", "Connections", "Warning at percent"];
  const changed = names.filter((name) => fields[name] !== before[name]);
  const body = Object.fromEntries(changed.map((name) => [name, fields[name] ? Number(fields[name]) : null]));
  const begin = () => {
    const present = Object.fromEntries(names.map((name) => [name, String(database.quotas[name] ?? "")]));
    setBefore(present);
    setFields(present);
  };
  return html`<${Action}
    label="Change limits"
    call=${{ method: "PATCH", path: "/databases/{uuid}/quotas", params: { uuid: database.uuid }, body }}
    confirm="Change"
    ready=${changed.length > 0}
    onOpen=${begin}
    onDone=${reload}
    ...${allowed(database)}
  >
    <p>An empty field returns to the plan's limit.</p>
    ${names.map(
      (name, at) => html`<${Field}
        key=${name}
        label=${labels[at]}
        type="number"
        min="0"
        step=${at ? "1" : "any"}
        placeholder=${String(database.limits[name])}
        value=${fields[name] ?? ""}
        onValue=${(/** @type {string} */ value) => setFields({ ...fields, [name]: value })}
      />`,
    )}
  <//>`;
}

/** @param {Props} props */
function Changes({ database, reload }) {
  const params = { uuid: database.uuid };
  const path = "/databases/{uuid}";
  const [name, setName] = useState("");
  const [labels, setLabels] = useState(/** @type {Record<string, string>} */ ({}));
  const [text, setText] = useState("");
  const [expiry, setExpiry] = useState("");
  const [clone, setClone] = useState({ name: "", pause: false });
  const member = allowed(database);
  const admin = allowed(database, "admin");
  const patch = (/** @type {object} */ body) => /** @type {const} */ ({ method: "PATCH", path, params, body });
  const paused = database.status === "paused";
  const changed = changedLabels(labels, text);
  const beginLabels = () => {
    setLabels(database.labels);
    setText(asLines(database.labels));
  };
  // Two actions in one place have keys: where somebody else was first, a dialog closes, and is never its own opposite.
  return html`<section class="panel" aria-labelledby="changes">
    <h2 id="changes">Change it</h2>
    <${RoleNote} database=${database} what="change it" />
    ${may("member", database.team_id) && html`<${RoleNote} database=${database} role="admin" what="delete it, or have it expire" />`}
    <div class="buttons">
      <${Action} label="Rename" call=${patch({ name })} ready=${name !== "" && name !== database.name} onOpen=${() => setName(database.name)} onDone=${reload} ...${member}>
        <p>Only the name in Headwater changes: the address, the user and the name on the host stay.</p>
        <${Field} label="Name" value=${name} onValue=${setName} maxlength="63" autocomplete="off" spellcheck=${false} hint="Lowercase letters, digits and hyphens." />
      <//>
      <${Action} label="Edit labels" call=${patch({ labels: changed })} confirm="Save" ready=${Object.keys(changed).length > 0} onOpen=${beginLabels} onDone=${reload} ...${member}>
        <${Field} label="Labels" rows=${6} value=${text} onValue=${setText} spellcheck=${false} hint="One on a line, as key:value. No place for secrets: labels are in webhooks." />
      <//>
      <${Action}
        key=${`protected-${database.deletion_protection}`}
        label=${database.deletion_protection ? "Take protection away" : "Protect from deletion"}
        call=${patch({ deletion_protection: !database.deletion_protection })}
        onDone=${reload}
        ...${member}
      >
        <p>${database.deletion_protection ? "Then it can be deleted again." : "While it is protected, every deletion is refused."}</p>
      <//>
      <${Action} label=${database.expires_at ? "Change its expiry" : "Let it expire"} call=${patch({ expires_at: typedMoment(expiry) })} ready=${expiry !== ""} onOpen=${() => setExpiry("")} onDone=${reload} ...${admin}>
        <p>It deletes itself then, as a deletion would, and can be undeleted within the grace period.</p>
        <${Field} label="Expires at" type="datetime-local" value=${expiry} onValue=${setExpiry} hint="In your zone; at least 5 minutes ahead." />
      <//>
      ${database.expires_at &&
      html`<${Action} label="Never expire" call=${patch({ expires_at: null })} onDone=${reload} ...${member}>
        <p>It stays until somebody deletes it.</p>
      <//>`}
      <${Action}
        key=${`paused-${paused}`}
        label=${paused ? "Resume" : "Pause"}
        call=${{ method: paused ? "DELETE" : "POST", path: `${path}/pauses`, params }}
        onDone=${reload}
        ...${member}
      >
        <p>${paused ? "It takes connections again." : "Its connections end and nobody gets in until it is resumed. Data and credentials stay."}</p>
      <//>
      <${Action}
        label="Clone"
        call=${{
          method: "POST",
          path: "/databases",
          body: {
            name: clone.name,
            ...(database.team_id !== null && { team_id: database.team_id }),
            source: { database_uuid: database.uuid, ...(clone.pause && { pause_source: true }) },
          },
        }}
        ready=${clone.name !== ""}
        onOpen=${() => setClone({ name: `${database.name.slice(0, 57)}-clone`, pause: false })}
        onDone=${(/** @type {any} */ answer) => navigate(`/databases/${answer.data.uuid}`)}
        ...${member}
      >
        <p>A new database with what is in this one now. Nobody's session ends.</p>
        <${CloneFields} fields=${clone} onFields=${setClone} />
      <//>
      <${Action}
        label="Delete"
        title=${`Delete ${database.name}`}
        danger
        typed=${database.name}
        call=${{ method: "DELETE", path, params }}
        onDone=${() => navigate("/databases/deleted")}
        ...${database.deletion_protection ? { disabled: true, why: "It is protected from deletion." } : admin}
      >
        <p>All access ends at once. The data is kept for the grace period, within which the database can be undeleted.</p>
      <//>
    </div>
    ${database.deletion_protection && html`<p class="quiet">It is protected: take the protection away before deleting it.</p>`}
  </section>`;
}

/** @param {Record<string, string>} labels */
const asLines = (labels) => Object.entries(labels).map(([key, value]) => `${key}:${value}`).join("\n");

/**
 * What a PATCH needs for these lines: what they name anew, and null for what they don't any more.
 * @param {Record<string, string>} before as they were when somebody began to edit them: what others have changed since
 *   stays @param {string} text
 */
function changedLabels(before, text) {
  const named = labelsIn(text);
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(named, key)).map((key) => [key, null]);
  const changed = Object.entries(named).filter(([key, value]) => before[key] !== value);
  return Object.fromEntries([...gone, ...changed]);
}
