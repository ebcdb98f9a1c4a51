import { address } from "../api.js";
import { html } from "../html.js";
import { Copy } from "./copy.js";

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/**
 * The command that does the same as a request, with an API key in place of the cookie.
 * @param {import("../action.js").Call} call
 * @param {string} [key] the Idempotency-Key
 */
export function curl({ method, path, params, query, body }, key) {
  const lines = [`curl -sS${method === "GET" ? "" : ` -X ${method}`} ${quoted(location.origin + address(path, { params, query }))}`];
  lines.push(`-H "Authorization: Bearer $HEADWATER_API_KEY"`);
  if (key) lines.push(`-H ${quoted(`Idempotency-Key: ${key}`)}`);
  if (body) lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/**
 * That command, folded.
 * @param {{ call: import("../action.js").Call, idempotencyKey?: string }} props
 */
export function Curl({ call, idempotencyKey }) {
  const command = curl(call, idempotencyKey);
  return html`
    <details class="curl">
      <summary>The same with curl</summary>
      <pre tabindex="0">${command}</pre>
      <${Copy} text=${command} what="the command" />
    </details>
  `;
}
