import { api } from "../../api.js";
import { ActionForm } from "../../components/action.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Time } from "../../components/time.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../live.js";
import { to } from "../../router.js";
import { readSession, session, sessionError } from "../../session.js";

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
  if (joined) return html`<${Page} title="Invitation"><${Joined} member=${joined} /><//>`;
  return html`<${Page} title="Invitation">
    ${token
      ? html`<${Invited} token=${token} onJoined=${setJoined} />`
      : html`<p>The token of an invitation is in its link, and works once. Open the link again.</p>`}
  <//>`;
}

/** @param {{ member: any }} props */
function Joined({ member }) {
  const team = session.value?.teams.find((one) => one.id === member.team_id);
  return html`<p>You are in <a href=${to(`/teams/${member.team_id}`)}>${team?.name ?? "the team"}</a>. Your role there is ${member.role}.</p>`;
}

/** @param {{ token: string, onJoined: (member: any) => void }} props */
function Invited({ token, onJoined }) {
  const { data, error, reload } = useResource(() => api.send("POST", "/invitation_previews", { token }), [token]);
  const one = data?.data;
  const accepted = async (/** @type {any} */ answer) => {
    await readSession();
    onJoined(answer.data);
  };
  if (!one) {
    return html`<${ErrorNote} error=${error} retry=${reload} />
      ${!error && html`<p aria-busy="true"><span class="spinner"></span> Reading the invitation…</p>`}`;
  }
  const me = session.value?.user;
  const another = me && one.email && one.email.toLowerCase() !== me.email.toLowerCase();
  if (one.status !== "open") {
    return html`<p>The invitation into ${one.team} ${one.status === "accepted" ? "has been accepted" : "has expired"}. Ask for another one.</p>`;
  }
  return html`
    <p>You have been invited into <strong>${one.team}</strong>. Your role there will be ${one.role}. The invitation works until <${Time} value=${one.expires_at} />${one.email && html`, for ${one.email} alone`}.</p>
    ${another && html`<p>You are signed in as ${me.name} (${me.email}): sign out, and in as ${one.email}.</p>`}
    ${me && !another
      ? html`<p>You join it as ${me.name} (${me.email}).</p>
          <${ActionForm} call=${{ method: "POST", path: "/invitation_acceptances", body: { token } }} submit="Join the team" onDone=${accepted} />`
      : !me && html`<${SignInFirst} token=${token} email=${one.email} />`}
  `;
}

/** @param {{ token: string, email: string | null }} props */
function SignInFirst({ token, email }) {
  const methods = useResource((signal) => api.get("/sign_in_methods", { signal }));
  const [error, setError] = useState(/** @type {any} */ (null));
  const provider = methods.data?.data.provider;
  // In another tab: this one has the token, and nothing else does.
  const leave = async () => {
    setError(null);
    try {
      const { data } = await api.send("POST", "/sign_in_redirects/invitations", { token });
      window.open(data.url, "_blank", "noopener");
    } catch (fault) {
      setError(fault);
    }
  };
  return html`
    <p>Sign in first: <a href=${to("/sign-in")} target="_blank">open the sign-in in another tab</a>, and come back to this one.</p>
    ${provider && email
      ? html`<p>Who has no account yet gets one by signing in through ${provider} as ${email}.</p>`
      : html`<p>Who has no account yet gets one from who runs this service.</p>`}
    <${ErrorNote} error=${error ?? sessionError.value} />
    <div class="buttons">
      ${provider && email && html`<button type="button" onClick=${leave}>Sign in through ${provider}</button>`}
      <button type="button" class="primary" onClick=${readSession}>I have signed in</button>
    </div>
  `;
}
