// What all pages of one database share: its name, its state, what is under way, and the ways to its parts.
import { api, isRefused } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Tabs } from "../../components/tabs.js";
import { words } from "../../format.js";
import { effect, html, useEffect } from "../../html.js";
import { ended, useOperation, useResource } from "../../live.js";
import { to, useTitle } from "../../router.js";
import { may, roleIn, rolesFrom, session } from "../../session.js";

/** @typedef {import("../../api.js").Schemas} Schemas */
/** @typedef {Omit<Schemas["DatabaseView"], "db_password" | "connection_string">} Database */
/** @typedef {Schemas["OperationView"]} Operation */

const EVERY = 5000;
const PARTS = [
  ["", "Overview"],
  ["/connect", "Connect"],
  ["/users", "Users"],
  ["/charts", "Charts"],
  ["/backups", "Backups"],
  ["/operations", "Operations"],
  ["/blueprints", "Blueprints"],
];

/** The database that was shown last, so that going to another part of it shows no empty page. */
let shown = /** @type {Database | null} */ (null);

// Whoever signs in next has seen nothing yet.
effect(() => {
  if (!session.value) shown = null;
});

/**
 * A database without its password, which the API gives with it, twice: only what asks for the password has it.
 * @param {string} uuid @param {AbortSignal} [signal]
 * @returns {Promise<Database>}
 */
export async function readDatabase(uuid, signal) {
  const { db_password, connection_string, ...rest } = (await api.get("/databases/{uuid}", { params: { uuid }, signal })).data;
  return rest;
}

/** Its password, for who may see it. @param {string} uuid */
export async function readPassword(uuid) {
  const { data } = await api.get("/databases/{uuid}", { params: { uuid } });
  if (data.db_password === undefined) throw new Error("Viewers see no passwords: members, admins and owners do.");
  return data.db_password;
}

/**
 * What an action has where the person's role is too small: disabled, and why.
 * @param {{ team_id?: number | null }} of without a team: of any of the person's @param {"member" | "admin"} [role]
 */
export function allowed(of, role = "member") {
  return may(role, of.team_id) ? {} : { disabled: true, why: `Only ${rolesFrom(role)} of the team may.` };
}

/**
 * Says whose role is too small for what is beneath.
 * @param {{ database: Database, role?: "member" | "admin", what: string }} props
 */
export function RoleNote({ database, role = "member", what }) {
  if (may(role, database.team_id)) return null;
  return html`<p class="quiet">
    Your role in ${database.team_name ?? "the team"} is ${roleIn(database.team_id) ?? "none"}: only ${rolesFrom(role)} may ${what}.
  </p>`;
}

/**
 * A page of a database. `children` draws the part, with the database as it is now and a function that reads it again.
 * @param {{ uuid: string, part?: string, children: (database: Database, reload: () => void) => any }} props
 */
export function DatabasePage({ uuid, part = "", children }) {
  const found = useResource((signal) => readDatabase(uuid, signal), [uuid], { every: EVERY });
  const operations = useResource(
    (signal) => api.get("/operations", { query: { database_uuid: uuid, limit: 10 }, signal }),
    [uuid],
    { every: EVERY },
  );
  const database = found.data ?? (shown?.uuid === uuid ? shown : null);
  if (found.data) shown = found.data;
  const label = PARTS.find(([path]) => path === part)?.[1];
  useTitle(database ? `${database.name}: ${label}` : label);
  const reload = () => {
    found.reload();
    operations.reload();
  };
  if (isRefused(found.error)) {
    shown = null;
    return html`<${Gone} error=${found.error} />`;
  }
  const crumbs = [{ path: "/databases", label: "Databases" }];
  if (!database) {
    return html`<${Page} title="Database" crumbs=${crumbs}>
      <${ErrorNote} error=${found.error} retry=${reload} />
      ${!found.error && html`<p aria-busy="true"><span class="spinner"></span> Reading the database…</p>`}
    <//>`;
  }
  const open = (operations.data?.data ?? []).filter((/** @type {Operation} */ one) => !ended(one) && one.type !== "delete");
  return html`
    <${Page} title=${database.name} crumbs=${crumbs} status=${html`<${Status} value=${database.status} />`}>
      ${database.status_reason && html`<p class="reason">${database.status_reason.message} <code>${database.status_reason.code}</code></p>`}
      ${open.map(
        (/** @type {Operation} */ one, /** @type {number} */ at) =>
          html`<${UnderWay} key=${one.uuid} known=${one} followed=${at === 0} onEnd=${reload} />`,
      )}
      <${Tabs}
        label="Parts of the database"
        tabs=${PARTS.map(([path, text]) => ({ path: `/databases/${uuid}${path}`, label: text }))}
      />
      <${ErrorNote} error=${found.error} retry=${reload} />
      ${children(database, reload)}
    <//>
  `;
}

/**
 * What is under way, in a line. Only the first is `followed`: a browser has six connections to a server, for all that it
 * shows, and a stream holds one. The others are as they were last read.
 * @param {{ known: Operation, followed: boolean, onEnd: () => void }} props
 */
function UnderWay({ known, followed, onEnd }) {
  const operation = useOperation(followed ? known.uuid : null) ?? known;
  const over = ended(operation);
  useEffect(() => {
    if (over) onEnd();
  }, [over]);
  const step = operation.steps.find((one) => one.status === "running");
  const { progress, reason } = operation;
  return html`<p class="under-way" role="status">
    <${Status} value=${operation.status} label=${`${words(operation.type)}: ${operation.status}`} />${" "}
    ${step && !over && html`<span class="quiet">${words(step.name)}</span>`}${" "}
    ${progress && progress.total > 0 && html`<progress max=${progress.total} value=${progress.done} aria-label="Progress"></progress>`}${" "}
    ${reason && html`<span>${reason.message}</span>`}${" "}
    <a href=${to(`/operations/${operation.uuid}`)}>Steps</a>
  </p>`;
}

/** @param {{ error: any }} props */
function Gone({ error }) {
  return html`<${Page} title="There is no such database" crumbs=${[{ path: "/databases", label: "Databases" }]}>
    <p>It may have been deleted, or it is another team's. <a href=${to("/databases/deleted")}>Deleted databases</a></p>
    <${ErrorNote} error=${error} />
  <//>`;
}
