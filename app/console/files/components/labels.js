import { html } from "../html.js";

/**
 * Labels, as `key:value`.
 * @param {{ labels: Record<string, string> }} props
 */
export function Labels({ labels }) {
  return Object.entries(labels).map(
    ([key, value]) => html`<span key=${key} class="label">${key}${value && `:${value}`}</span> `,
  );
}
