import { ActionForm } from "../../components/action.js";
import { Page } from "../../components/page.js";
import { html, useState } from "../../html.js";
import { to } from "../../router.js";
import { readSession, session } from "../../session.js";

/** The token, which is then no longer in the address or the history. */
function takeToken() {
  const token = location.hash.slice(1);
  if (token) history.replaceState(history.state, "", location.pathname);
  return token;
}

/** What the link of an invitation leads to. The token is in this page alone. */
export default function Invitation() {
  const [token] = useState(takeToken);
  const [joined, setJoined] = useState(/** @type {any} */ (null));
  const accepted = async (/** @type {any} */ answer) => {
    await readSession();
    setJoined(answer.data);
  };
  const team = joined && session.value?.teams.find((one) => one.id === joined.team_id);
  return html`<${Page} title="Invitation">
    ${joined
      ? html`<p>You are in <a href=${to(`/teams/${joined.team_id}`)}>${team?.name ?? "the team"}</a>. Your role there is ${joined.role}.</p>`
      : !token
        ? html`<p>The token of an invitation is in its link, and works once. Open the link again.</p>`
        : session.value
          ? html`<p>You have been invited into a team. You join it as ${session.value.user.name} (${session.value.user.email}).</p>
              <${ActionForm} call=${{ method: "POST", path: "/invitation_acceptances", body: { token } }} submit="Join the team" onDone=${accepted} />`
          : html`<p>You have been invited into a team. Sign in first: <a href=${to("/")} target="_blank">open the sign-in in another tab</a>, and come back to this one.</p>
              <p>Who has no account yet gets one from who runs this service.</p>
              <button type="button" class="primary" onClick=${readSession}>I have signed in</button>`}
  <//>`;
}
