import { html } from "../html.js";
import { useArrival, useTitle } from "../router.js";

/** For who isn't signed in. */
export function SignedOut() {
  useTitle("Sign in");
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>Sign in</h1>
    <p>Open the link that <code>make up</code> or <code>headwater users sign-in-link</code> printed. It works once.</p>
  `;
}
