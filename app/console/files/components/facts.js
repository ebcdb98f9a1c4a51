import { Fragment, html } from "../html.js";

/**
 * Names and their values.
 * @param {{ facts: [string, any][] }} props
 */
export function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts.map(([name, value]) => html`<${Fragment} key=${name}><dt>${name}</dt><dd>${value}</dd><//>`)}
  </dl>`;
}
