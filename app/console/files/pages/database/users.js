import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Secret } from "../../components/secret.js";
import { Status } from "../../components/status.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { KEEPS_LOGIN } from "../../engines.js";
import { typedMoment, words } from "../../format.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { DatabasePage, RoleNote, allowed } from "./shell.js";

/** @typedef {import("./shell.js").Database} Database */
/** @typedef {import("./shell.js").Schemas} Schemas */
/** @typedef {Schemas["CredentialView"]} Credential */
/** @typedef {Schemas["DatabaseUserView"]} User */

const OVERLAPS = [
  { value: "0", label: "End the previous password at once" },
  { value: "3600", label: "Both for an hour" },
  { value: "86400", label: "Both for a day" },
  { value: "604800", label: "Both for a week" },
];
const sessions = (/** @type {number | null} */ count) => count ?? html`<span class="quiet" title="The engine doesn't show it">–</span>`;

/** @param {{ params: { uuid: string } }} props */
export default function Users({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid} part="/users">
    ${(/** @type {Database} */ database, /** @type {() => void} */ reload) =>
      html`<${Logins} database=${database} onChange=${reload} />`}
  <//>`;
}

/** @param {{ database: Database, onChange: () => void }} props */
function Logins({ database, onChange }) {
  const params = { uuid: database.uuid };
  const read = (/** @type {string} */ what) => (/** @type {AbortSignal} */ signal) =>
    api.get(`/databases/{uuid}/${what}`, { params, signal });
  const credentials = useResource(read("credentials"), [database.uuid], { every: 10_000 });
  const users = useList("/databases/{uuid}/users", { params, id: (/** @type {User} */ one) => one.name, every: 10_000 });
  const rotations = useResource(read("credential_rotations"), [database.uuid], { every: 10_000 });
  const reload = () => {
    for (const one of [credentials, users, rotations]) one.reload();
    onChange();
  };
  const overlapping = rotations.data?.data.find((/** @type {any} */ one) => one.status === "overlapping");
  return html`
    <${ErrorNote} error=${credentials.error ?? rotations.error} retry=${reload} />
    <${RoleNote} database=${database} what="change credentials and users" />
    <section aria-labelledby="logins">
      <h2 id="logins">Logins</h2>
      <${Table}
        label="Logins of the database"
        rows=${credentials.data?.data ?? []}
        id=${(/** @type {Credential} */ one) => one.db_username + one.created_at}
        columns=${[
          { label: "Login", class: "main", cell: (/** @type {Credential} */ one) => html`${one.user ?? "The database's own"} <code class="account">${one.db_username}</code>` },
          {
            label: "Status",
            cell: (/** @type {Credential} */ one) => html`<${Status} value=${one.status} tone=${one.status === "retiring" ? "warn" : undefined} />
              ${one.retires_at && html`<br />ends <${Time} value=${one.retires_at} relative />`}`,
          },
          { label: "Sessions", class: "number", wide: true, cell: (/** @type {Credential} */ one) => sessions(one.open_sessions) },
        ]}
      />
      <div class="buttons">
        <${Rotate} database=${database} busy=${overlapping !== undefined} onDone=${reload} />
        ${overlapping &&
        html`<${Action}
          label="End the overlap now"
          danger
          call=${{ method: "POST", path: "/credential_rotations/{uuid}/completions", params: { uuid: overlapping.uuid } }}
          onDone=${reload}
          ...${allowed(database)}
        >
          <p>
            The previous password is refused from now on.
            ${overlapping.previous.open_sessions !== null && ` Sessions that still use it: ${overlapping.previous.open_sessions}.`}
          </p>
        <//>`}
      </div>
      ${overlapping &&
      html`<p class="quiet">
        The previous password works until <${Time} value=${overlapping.previous.retires_at} />. Another rotation can begin when it has ended.
      </p>`}
    </section>
    <section aria-labelledby="users">
      <h2 id="users">Users</h2>
      <${Listing}
        list=${users}
        label="Users of the database"
        columns=${[
          { label: "Name", class: "main", cell: (/** @type {User} */ one) => html`${one.name} <code class="account">${one.db_username}</code>` },
          { label: "Access", class: "nowrap", wide: true, cell: (/** @type {User} */ one) => words(one.access) },
          { label: "Status", cell: (/** @type {User} */ one) => html`<${Status} value=${one.status} />` },
          { label: "Connections", class: "number", wide: true, cell: (/** @type {User} */ one) => one.connection_limit },
          { label: "Expires", class: "nowrap", wide: true, cell: (/** @type {User} */ one) => html`<${Time} value=${one.expires_at} />` },
          { label: "Sessions", class: "number", wide: true, cell: (/** @type {User} */ one) => sessions(one.open_sessions) },
          {
            label: "Actions",
            cell: (/** @type {User} */ one) => html`<${Renew} database=${database} user=${one} onDone=${reload} />${" "}<${Action}
              label="Drop"
              title=${`Drop ${one.name}`}
              small
              danger
              typed=${one.name}
              call=${{ method: "DELETE", path: "/databases/{uuid}/users/{name}", params: { ...params, name: one.name } }}
              onDone=${reload}
              ...${allowed(database)}
            >
              <p>Its sessions end, and it gets in no more. What it made stays, as the database's.</p>
            <//>`,
          },
        ]}
        empty=${{
          title: "No further users",
          children: html`<p>A user has a password of its own, reads or writes, and can end by itself: for a report, a colleague, or a job.</p>`,
        }}
      />
      <div class="buttons"><${Make} database=${database} onDone=${reload} /></div>
    </section>
  `;
}

/** @param {{ database: Database, busy: boolean, onDone: () => void }} props */
function Rotate({ database, busy, onDone }) {
  const [overlap, setOverlap] = useState("86400");
  const [end, setEnd] = useState(false);
  const keepsLogin = KEEPS_LOGIN[database.db_type];
  const body = { overlap_seconds: Number(overlap), ...(keepsLogin && end && { end_sessions: true }) };
  return html`<${Action}
    label="Rotate the password"
    confirm="Rotate"
    call=${{ method: "POST", path: "/databases/{uuid}/credential_rotations", params: { uuid: database.uuid }, body }}
    onDone=${onDone}
    result=${given}
    ...${busy ? { disabled: true, why: "The last rotation still overlaps." } : allowed(database)}
  >
    <p>
      The database gets a new password${keepsLogin ? "" : " and a new user name"}. It is shown once, here; the previous one
      works beside it for the time that you choose.
    </p>
    <${Field} label="Overlap" value=${overlap} onValue=${setOverlap} options=${OVERLAPS} />
    ${keepsLogin &&
    html`<${Field}
      label="End open sessions with the overlap"
      type="checkbox"
      value=${end}
      onValue=${setEnd}
      hint="This engine doesn't show which password opened a session: all end, and clients that know the new one come back."
    />`}
  <//>`;
}

/** @param {{ database: Database, user: User, onDone: () => void }} props */
function Renew({ database, user, onDone }) {
  const [end, setEnd] = useState(false);
  const body = end ? { end_sessions: true } : {};
  const params = { uuid: database.uuid, name: user.name };
  return html`<${Action}
    label="New password"
    title=${`New password for ${user.name}`}
    confirm="Replace the password"
    small
    call=${{ method: "POST", path: "/databases/{uuid}/users/{name}/rotations", params, body }}
    onDone=${onDone}
    result=${given}
    ...${user.status === "active" ? allowed(database) : { disabled: true, why: `The user is ${user.status}.` }}
  >
    <p>The present password is refused from then on. For a change without an interruption make a second user, and drop this one later.</p>
    <${Field} label="End its open sessions" type="checkbox" value=${end} onValue=${setEnd} hint="Otherwise they go on until their clients end them." />
  <//>`;
}

/** @param {{ database: Database, onDone: () => void }} props */
function Make({ database, onDone }) {
  const empty = { name: "", access: "read_only", connections: "", expiry: "" };
  const [fields, setFields] = useState(empty);
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => setFields({ ...fields, [name]: value });
  const body = {
    name: fields.name,
    access: fields.access,
    ...(fields.connections && { connection_limit: Number(fields.connections) }),
    ...(fields.expiry && { expires_at: typedMoment(fields.expiry) }),
  };
  return html`<${Action}
    label="New user"
    confirm="Make the user"
    call=${{ method: "POST", path: "/databases/{uuid}/users", params: { uuid: database.uuid }, body }}
    ready=${fields.name !== ""}
    onOpen=${() => setFields(empty)}
    onDone=${onDone}
    result=${given}
    ...${allowed(database)}
  >
    <${Field} label="Name" value=${fields.name} onValue=${set("name")} maxlength="32" autocomplete="off" spellcheck=${false} hint="A letter, then lowercase letters, digits, _ and -." />
    <${Field}
      label="Access"
      value=${fields.access}
      onValue=${set("access")}
      options=${[
        { value: "read_only", label: "Reads only, tables made later too" },
        { value: "read_write", label: "Reads and writes" },
      ]}
    />
    <${Field} label="Connections" type="number" min="1" value=${fields.connections} onValue=${set("connections")} hint="Of the database's; a quarter of them unless given." />
    <${Field} label="Expires at" type="datetime-local" value=${fields.expiry} onValue=${set("expiry")} hint="In your zone; never unless given." />
  <//>`;
}

/** What is given once. @param {{ data: any }} answer */
function given({ data }) {
  return html`
    <p>Keep it now: it isn't shown here again.</p>
    <dl class="facts">
      <dt>User</dt><dd><code>${data.db_username}</code></dd>
      <dt>Password</dt><dd><${Secret} label="the password" load=${() => data.db_password} shown /></dd>
      <dt>URL</dt><dd><${Secret} label="the URL" load=${() => data.connection_string} /></dd>
    </dl>
  `;
}
