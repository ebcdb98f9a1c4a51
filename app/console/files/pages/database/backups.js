import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { bytes, counted, seconds, words } from "../../format.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { navigate } from "../../router.js";
import { CloneFields } from "./fields.js";
import { DatabasePage, RoleNote, allowed } from "./shell.js";

/** @typedef {import("./shell.js").Database} Database */
/** @typedef {import("./shell.js").Schemas} Schemas */
/** @typedef {Schemas["BackupView"]} Backup */
/** @typedef {Schemas["BackupPolicyView"]} Policy */

const PROOFS = {
  pending: ["Not tested yet", "idle"],
  running: ["Being tested", "busy"],
  proven: ["Proven", "good"],
  mismatch: ["Came back different", "bad"],
  failed: ["Test failed", "bad"],
};

/** @param {{ params: { uuid: string } }} props */
export default function Backups({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid} part="/backups">
    ${(/** @type {Database} */ database, /** @type {() => void} */ reload) =>
      html`<${List} database=${database} onChange=${reload} />`}
  <//>`;
}

/** @param {{ database: Database, onChange: () => void }} props */
function List({ database, onChange }) {
  const params = { uuid: database.uuid };
  const policy = useResource((signal) => api.get("/databases/{uuid}/backup_policy", { params, signal }), [database.uuid]);
  const backups = useList("/databases/{uuid}/backups", { params, every: 3000 });
  const reload = () => {
    backups.reload();
    policy.reload();
    onChange();
  };
  return html`
    <${RoleNote} database=${database} what="take and restore backups" />
    <${ErrorNote} error=${policy.error} retry=${policy.reload} />
    ${policy.data && html`<${PolicyPanel} database=${database} policy=${policy.data.data} onDone=${reload} />`}
    <h2>Backups</h2>
    <div class="buttons"><${Take} database=${database} onDone=${reload} /></div>
    <${Listing}
      list=${backups}
      label="Backups"
      card=${(/** @type {Backup} */ one) => html`<${One} key=${one.uuid} backup=${one} database=${database} onDone=${reload} />`}
      empty=${{
        title: "No backups yet",
        children: html`<p>One is taken by itself as the policy says. Take one now before you change something.</p>`,
      }}
    />
  `;
}

/** @param {{ database: Database, onDone: () => void }} props */
function Take({ database, onDone }) {
  const [fields, setFields] = useState({ description: "", days: "" });
  const body = {
    ...(fields.description && { description: fields.description }),
    ...(fields.days && { keep_days: Number(fields.days) }),
  };
  return html`<${Action}
    label="Take a backup"
    confirm="Take it"
    call=${{ method: "POST", path: "/databases/{uuid}/backups", params: { uuid: database.uuid }, body }}
    onOpen=${() => setFields({ description: "", days: "" })}
    onDone=${onDone}
    ...${allowed(database)}
  >
    <p>One consistent moment of the whole database, taken while it works.</p>
    <${Field} label="Description" maxlength="255" value=${fields.description} onValue=${(/** @type {string} */ description) => setFields({ ...fields, description })} />
    <${Field} label="Keep for days" type="number" min="1" max="3650" value=${fields.days} onValue=${(/** @type {string} */ days) => setFields({ ...fields, days })} hint="Until somebody deletes it, unless given." />
  <//>`;
}

/**
 * A backup, and what can be done with it; without its database, which may be gone, it is restored into a new one alone.
 * @param {{ backup: Backup, database?: Database, onDone: () => void }} props
 */
export function One({ backup, database, onDone }) {
  const [clone, setClone] = useState({ name: "" });
  const { proof } = backup;
  const [proofText, tone] = PROOFS[proof.status];
  const whole = backup.status === "completed";
  const heading = database ? "h3" : "h2";
  const member = allowed(backup);
  const params = { uuid: backup.uuid };
  const taken = html`<${Time} value=${backup.consistent_at ?? backup.created_at} />`;
  return html`<article class="panel backup" aria-label=${`Backup ${backup.uuid}`}>
    <div class="backup-head">
      <${heading}>${!database && `${backup.database_name}, `}${taken}<//>
      <${Status} value=${backup.status} />
      ${whole && html`<${Status} value=${proof.status} tone=${tone} label=${proofText} />`}
      <span class="quiet">${words(backup.kind)}</span>
    </div>
    ${backup.description && html`<p>${backup.description}</p>`}
    ${backup.error && html`<p class="reason">${backup.error}</p>`}
    ${whole &&
    html`<p class="quiet">
      ${bytes(backup.size_bytes ?? 0)}, stored as ${bytes(backup.stored_bytes ?? 0)}; ${counted(backup.tables ?? 0, "table")},
      ${" "}${counted(backup.rows ?? 0, "row")}. Kept ${backup.expires_at ? html`until <${Time} value=${backup.expires_at} />` : "until somebody deletes it"}.
    </p>`}
    ${proof.proven_at &&
    html`<p class="quiet">
      Restored and compared <${Time} value=${proof.proven_at} relative />: ${counted(proof.rows ?? 0, "row")} in ${seconds(proof.restore_seconds ?? 0)}.
    </p>`}
    ${proof.error && html`<p class="reason">${proof.error}</p>`}
    ${proof.differences.length > 0 &&
    html`<details><summary>${counted(proof.differences.length, "difference")}</summary>
      <ul>${proof.differences.map((one, at) => html`<li key=${at}>${Object.values(one).filter((part) => part !== null).join(" ")}</li>`)}</ul>
    </details>`}
    ${(whole || backup.status === "running" || backup.status === "pending") &&
    html`<div class="buttons">
      ${whole &&
      html`
        <${Action} label="Test it" small call=${{ method: "POST", path: "/backups/{uuid}/restore_tests", params }} onDone=${onDone} ...${proof.status === "running" ? { disabled: true, why: "A test is under way." } : member}>
          <p>It is restored into a database that no team has, compared table by table, and that database is deleted again.</p>
        <//>
        ${database &&
        html`<${Action}
          label="Restore into this database"
          small
          danger
          typed=${database.name}
          confirm="Restore"
          call=${{ method: "POST", path: "/databases/{uuid}/restorations", params: { uuid: database.uuid }, body: source(backup) }}
          onDone=${(/** @type {any} */ answer) => (answer.operation ? navigate(`/operations/${answer.operation.uuid}`) : onDone())}
          ...${member}
        >
          <p>
            ${database.name} gets the data of ${taken}. Name, address, user and password stay. What is in it now is backed
            up first; nobody is connected meanwhile. If it fails, the data is what it was before.
          </p>
        <//>`}
        <${Action}
          label="New database from it"
          small
          call=${{
            method: "POST",
            path: "/databases",
            body: { name: clone.name, team_id: backup.team_id, source: source(backup) },
          }}
          ready=${clone.name !== ""}
          onOpen=${() => setClone({ name: `${backup.database_name.slice(0, 54)}-restored` })}
          onDone=${(/** @type {any} */ answer) => navigate(`/databases/${answer.data.uuid}`)}
          ...${member}
        >
          <p>A new database with the data of ${taken}.</p>
          <${CloneFields} fields=${clone} onFields=${setClone} />
        <//>
      `}
      <${Action}
        key=${whole ? "delete" : "stop"}
        label=${whole ? "Delete" : "Stop and delete"}
        title="Delete the backup"
        small
        danger
        confirm="Delete"
        call=${{ method: "DELETE", path: "/backups/{uuid}", params }}
        onDone=${onDone}
        ...${allowed(backup, "admin")}
      >
        <p>Nothing can be restored from it any more.</p>
      <//>
    </div>`}
  </article>`;
}

/** @param {Backup} backup */
const source = (backup) => ({ backup_uuid: backup.uuid });

const FIELDS = /** @type {const} */ ([
  ["every_hours", "Hours between backups", 720],
  ["keep_days", "Keep for days", 3650],
  ["keep_last", "Backups kept in any case", 1000],
  ["test_every_days", "Days between tests", 365],
]);

const kept = (/** @type {number} */ count) => (count === 1 ? "the last one" : `the last ${count}`);

/** @param {{ database: Database, policy: Policy, onDone: () => void }} props */
function PolicyPanel({ database, policy, onDone }) {
  const [fields, setFields] = useState(/** @type {Record<string, any>} */ ({}));
  const set = (/** @type {string} */ name) => (/** @type {any} */ value) => setFields({ ...fields, [name]: value });
  const changed = Object.fromEntries(
    [...FIELDS.map(([name]) => /** @type {const} */ ([name, fields[name] === "" ? null : Number(fields[name])])), /** @type {const} */ (["enabled", fields.enabled])].filter(
      ([name, value]) => value !== policy[name],
    ),
  );
  return html`<section class="panel" aria-labelledby="policy">
    <h2 id="policy">Scheduled backups</h2>
    <p>
      ${policy.enabled
        ? `Every ${counted(policy.every_hours, "hour")}, kept for ${counted(policy.keep_days, "day")}, and ${kept(policy.keep_last)} in any case. One is proven by a restore every ${counted(policy.test_every_days, "day")}.`
        : "None are taken by themselves."}
    </p>
    ${policy.enabled &&
    html`<p class="quiet">
      Next backup: <${Time} value=${policy.next_backup_at} none="none to come" />. Next test: <${Time} value=${policy.next_test_at} none="none to come" />.
    </p>`}
    <${Action}
      label="Change the policy"
      confirm="Change"
      call=${{ method: "PATCH", path: "/databases/{uuid}/backup_policy", params: { uuid: database.uuid }, body: changed }}
      ready=${Object.keys(changed).length > 0}
      onOpen=${() => setFields({ enabled: policy.enabled, ...Object.fromEntries(FIELDS.map(([name]) => [name, String(policy[name])])) })}
      onDone=${onDone}
      ...${allowed(database)}
    >
      <${Field} label="Take and test backups by themselves" type="checkbox" value=${fields.enabled} onValue=${set("enabled")} />
      ${FIELDS.map(
        ([name, label, most]) => html`<${Field} key=${name} label=${label} type="number" min="1" max=${most} value=${fields[name] ?? ""} onValue=${set(name)} />`,
      )}
      <p class="hint">An empty field returns to the plan's.</p>
    <//>
  </section>`;
}
