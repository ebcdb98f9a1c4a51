import { html } from "../html.js";
import { to, useArrival, useTitle } from "../router.js";
import { readSession, sessionError } from "../session.js";
import { ErrorNote } from "./error-note.js";

/** For who isn't signed in. */
export function SignedOut() {
  useTitle("Sign in");
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>Sign in</h1>
    <${ErrorNote} error=${sessionError.value} retry=${readSession} />
    <p>Open the link that <code>make up</code> or <code>headwater users sign-in-link</code> printed. It works once.</p>
    <p><a href=${to("/sign-in")}>Other ways to sign in</a></p>
  `;
}

/** In place of a page while the API doesn't say who is signed in. @param {{ title: string }} props */
export function SessionUnread({ title }) {
  useTitle(title);
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>${title}</h1>
    <p>It could not be read who is signed in.</p>
    <${ErrorNote} error=${sessionError.value} retry=${readSession} />
  `;
}
