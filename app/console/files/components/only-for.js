import { html } from "../html.js";
import { may, rolesFrom } from "../session.js";

/**
 * Says who may do something, where the person's role in their teams is too small for it.
 * @param {{ what: string, role?: "member" | "admin" | "owner" }} props `what`: such as "write blueprints".
 */
export function OnlyFor({ what, role = "member" }) {
  return may(role) ? null : html`<p class="quiet">Only ${rolesFrom(role)} of a team ${what}.</p>`;
}
