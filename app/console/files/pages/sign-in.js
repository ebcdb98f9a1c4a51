// Signing in: by the link whose token is in the address's fragment, by a passkey, or through a provider.
import { ApiError, NoAnswer, api } from "../api.js";
import { ErrorNote } from "../components/error-note.js";
import { html, useEffect, useState } from "../html.js";
import { useResource } from "../live.js";
import { passkeysWork, usePasskey } from "../passkeys.js";
import { navigate, useArrival, useTitle } from "../router.js";
import { readSession, session, sessionError } from "../session.js";

/** Out of the address before anything else happens: neither the history nor a copied address has it. */
function takeToken() {
  const token = location.hash.slice(1);
  if (token) history.replaceState(null, "", location.pathname);
  return token;
}

/** What a provider has added to the address, out of it as well. */
function takeReturned() {
  const { code, state, iss, error } = Object.fromEntries(new URLSearchParams(location.search));
  if (location.search) history.replaceState(null, "", location.pathname);
  return state && (code || error) ? { code, state, iss, error } : null;
}

export default function SignIn() {
  const [returned, setReturned] = useState(takeReturned);
  const [token, setToken] = useState(takeToken);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  useTitle("Sign in");
  const heading = useArrival();

  /** @param {() => Promise<unknown>} way */
  const signIn = async (way) => {
    setBusy(true);
    setError(null);
    const before = session.value?.uuid;
    const fault = await way().then(() => null, (/** @type {unknown} */ problem) => problem);
    await readSession();
    // The browser may have the cookie of an answer whose end was lost.
    const opened = fault instanceof NoAnswer && session.value && session.value.uuid !== before;
    if (!fault || opened) return navigate("/", { replace: true });
    setError(fault);
    setBusy(false);
  };
  const follow = () => {
    setToken("");
    return signIn(() => api.send("POST", "/sign_ins/links", { token }, { keyless: true }));
  };
  // A link is followed at once, but not over the head of somebody who is signed in: it may be another person's.
  useEffect(() => {
    if (token && session.value === null) follow();
  }, [token, session.value]);
  useEffect(() => {
    if (!returned) return;
    setReturned(null);
    const { code, state, iss, error: refusal } = returned;
    if (refusal || !code) setError(new Error("The provider has not signed you in. Try again."));
    else signIn(() => api.send("POST", "/sign_ins/provider", { code, state, ...(iss && { iss }) }, { keyless: true }));
  }, [returned]);
  // Another link may be followed on a page that is open.
  useEffect(() => {
    const changed = () => setToken(takeToken());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);

  if (busy || (token && session.value === undefined && !sessionError.value)) {
    return html`<h1 tabindex="-1" ref=${heading}>Sign in</h1>
      <p aria-busy="true"><span class="spinner"></span> Signing in…</p>`;
  }
  return html`
    <h1 tabindex="-1" ref=${heading}>Sign in</h1>
    <${ErrorNote} error=${error} />
    <${ErrorNote} error=${sessionError.value} retry=${readSession} />
    ${error instanceof ApiError && error.code === "cross_origin_refused" && html`<${NeedsTls} />`}
    ${session.value ? html`<${SignedIn} token=${token} follow=${follow} />` : html`<${Ways} signIn=${signIn} />`}
  `;
}

/** @param {{ token: string, follow: () => void }} props */
function SignedIn({ token, follow }) {
  const name = session.value?.user.name;
  if (!token) return html`<p>You are signed in as ${name}. <a href="/console/">Go on</a></p>`;
  return html`
    <p>You are signed in as ${name}. This link ends that session, and signs in whoever it was made for.</p>
    <div class="buttons">
      <a class="button" href="/console/">Stay ${name}</a>
      <button type="button" class="primary" onClick=${follow}>Follow the link</button>
    </div>
  `;
}

/** @param {{ signIn: (way: () => Promise<unknown>) => void }} props */
function Ways({ signIn }) {
  const { data } = useResource((signal) => api.get("/sign_in_methods", { signal }), []);
  const provider = data?.data.provider;
  const leave = async () => {
    const { data: redirect } = await api.send("POST", "/sign_in_redirects");
    location.assign(redirect.url);
    // The page goes; nothing is to be read meanwhile.
    await new Promise(() => {});
  };
  return html`
    ${provider &&
    html`<div class="buttons">
      <button type="button" class="primary" onClick=${() => signIn(leave)}>Sign in through ${provider}</button>
    </div>`}
    ${passkeysWork &&
    html`<div class="buttons">
      <button type="button" class="primary" onClick=${() => signIn(usePasskey)}>Sign in with a passkey</button>
    </div>`}
    <p>Open a link to sign in. <code>make up</code> prints one, and an operator makes one:</p>
    <pre>headwater users sign-in-link ID</pre>
    <p>It works once, and for a short time.</p>
  `;
}

function NeedsTls() {
  return html`<p>Browsers sign in over TLS or at <code>localhost</code> alone: open this page with one of both.</p>`;
}
