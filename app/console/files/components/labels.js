import { html } from "../html.js";

/**
 * The labels that are written one on a line, as `key:value`.
 * @param {string} text
 * @returns {Record<string, string>}
 */
export function labelsIn(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(":");
      return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

/**
 * Labels, as `key:value`.
 * @param {{ labels: Record<string, string> }} props
 */
export function Labels({ labels }) {
  return Object.entries(labels).map(
    ([key, value]) => html`<span key=${key} class="label">${key}${value && `:${value}`}</span> `,
  );
}
