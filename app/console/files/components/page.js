import { html } from "../html.js";
import { to, useArrival, useTitle } from "../router.js";

/**
 * The heading of a page, what leads back, and what can be done. Each page is one of these.
 * @param {{
 *   title: string,
 *   crumbs?: { path: string, label: string }[],
 *   status?: any,
 *   actions?: any,
 *   children?: any,
 * }} props
 */
export function Page({ title, crumbs = [], status, actions, children }) {
  useTitle(title);
  const heading = useArrival();
  return html`
    ${crumbs.length > 0 &&
    html`<nav class="crumbs" aria-label="Way back">
      ${crumbs.map((crumb) => html`<a key=${crumb.path} href=${to(crumb.path)}>${crumb.label}</a>`)}
    </nav>`}
    <div class="heading">
      <h1 tabindex="-1" ref=${heading}>${title}</h1>
      ${status}
      ${actions && html`<div class="actions">${actions}</div>`}
    </div>
    ${children}
  `;
}
