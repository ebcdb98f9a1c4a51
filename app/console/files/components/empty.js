import { html } from "../html.js";

/**
 * What is said where there is nothing yet: what this is for, and what to do first.
 * @param {{ title: string, action?: any, children?: any }} props
 */
export function Empty({ title, action, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}${action && html`<div class="buttons">${action}</div>`}</div>`;
}
