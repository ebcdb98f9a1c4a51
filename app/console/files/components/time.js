import { ago, time, utc } from "../format.js";
import { html } from "../html.js";

/**
 * A time in the reader's zone; UTC when the pointer is on it. `relative`: "3 minutes ago".
 * @param {{ value: string | null | undefined, relative?: boolean, none?: string }} props
 */
export function Time({ value, relative = false, none = "never" }) {
  if (!value) return html`<span class="quiet">${none}</span>`;
  const title = relative ? `${time(value)} (${utc(value)})` : utc(value);
  return html`<time datetime=${value} title=${title}>${relative ? ago(value) : time(value)}</time>`;
}
