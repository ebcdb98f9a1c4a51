import { ApiError } from "../api.js";
import { html } from "../html.js";
import { Copy } from "./copy.js";

/**
 * What went wrong: the message, the error's code, the request's id, and who may do it.
 * @param {{ error: any, retry?: () => void }} props
 */
export function ErrorNote({ error, retry }) {
  if (!error) return null;
  const ofApi = error instanceof ApiError;
  const roles = ofApi && Array.isArray(error.details.required) ? error.details.required : [];
  return html`
    <div class="error-note">
      <p><strong>${error.message ?? String(error)}</strong></p>
      ${roles.length > 0 && html`<p>This needs the role ${roles.join(" or ")} in the team.</p>`}
      ${ofApi &&
      html`<p class="quiet">
        <code>${error.code}</code>${" "}
        ${error.requestId && html`request <code>${error.requestId}</code> <${Copy} text=${error.requestId} what="the request's id" />`}
      </p>`}
      ${retry && html`<button type="button" onClick=${retry}>Try again</button>`}
    </div>
  `;
}
