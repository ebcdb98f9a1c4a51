// Who is signed in, and what they may do. The API decides each request; this only saves a person useless buttons.
import { ApiError, api, refusals } from "./api.js";
import { effect, signal } from "./html.js";

/** @typedef {"viewer" | "member" | "admin" | "owner"} Role */
/**
 * @typedef {{
 *   uuid: string,
 *   user: { id: number, name: string, email: string },
 *   teams: { id: number, name: string, role: Role }[],
 *   operator: boolean,
 *   expires_at: string,
 * }} Session
 */

const ROLES = ["viewer", "member", "admin", "owner"];

/** undefined while it isn't known, null when nobody is signed in. */
export const session = signal(/** @type {Session | null | undefined} */ (undefined));

/** Why the API didn't say who is signed in when it was last asked; null when it did. */
export const sessionError = signal(/** @type {ApiError | null} */ (null));

/**
 * By which the tabs, which have one cookie, tell each other who is signed in. Null once the page is left: a browser keeps no
 * page for its back button that listens to one.
 * @type {BroadcastChannel | null}
 */
let tabs = new BroadcastChannel("headwater.user");
tabs.addEventListener("message", ({ data: user }) => {
  // Somebody else has signed in in another tab: what is done here would be done in their name, under this one's.
  if (session.value && session.value.user.id !== user) location.reload();
});
addEventListener("pagehide", () => {
  tabs?.close();
  tabs = null;
});

/** At the start: the server knows of some that they are not signed in. */
export async function startSession() {
  if ("visitor" in document.documentElement.dataset) session.value = null;
  else await readSession();
}

/** Asks who is signed in, at the start and after signing in; an error of the API's is in `sessionError`. */
export async function readSession() {
  try {
    const { data } = await api.get("/session");
    sessionError.value = null;
    session.value = data;
    if (data) tabs?.postMessage(data.user.id);
  } catch (fault) {
    if (!(fault instanceof ApiError)) throw fault;
    sessionError.value = fault;
    // With cookies that the API doesn't take somebody is nobody. Other errors say nothing of who they are.
    session.value = fault.status === 401 ? null : undefined;
  }
}

// A session that has ended shows itself by an answer to something else.
effect(() => {
  if (refusals.value > 0) session.value = null;
});

/**
 * The person's role in a team; null where they have none.
 * @param {number | null | undefined} teamId
 * @returns {Role | null}
 */
export function roleIn(teamId) {
  return session.value?.teams.find((team) => team.id === teamId)?.role ?? null;
}

/**
 * Whether the person's role in the team is at least `role`. Without a team: in any of theirs.
 * @param {Role} role
 * @param {number | null} [teamId]
 */
export function may(role, teamId) {
  const held = teamId == null ? (session.value?.teams ?? []).map((team) => team.role) : [roleIn(teamId)];
  return held.some((one) => one !== null && ROLES.indexOf(one) >= ROLES.indexOf(role));
}

/** "members, admins and owners": who may what needs `role`. @param {Role} role */
export function rolesFrom(role) {
  const names = ROLES.slice(ROLES.indexOf(role)).map((one) => `${one}s`);
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0];
}

/** What an action of operators has for everybody else: disabled, and why. */
export const forOperators = () => (session.value?.operator ? {} : { disabled: true, why: "Only operators do this." });
