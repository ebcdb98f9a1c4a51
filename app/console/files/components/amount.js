import { bytes, number, seconds } from "../format.js";
import { html } from "../html.js";

/**
 * A number with its unit. `unit`: "bytes" and "seconds" are written in the one that fits; any other follows the number.
 * `of` is a limit, and a bar shows the part that is used.
 * @param {{ value: number | null | undefined, unit?: string, of?: number | null, label?: string }} props
 */
export function Amount({ value, unit = "", of, label = "Used" }) {
  if (value === null || value === undefined) return html`<span class="quiet">unknown</span>`;
  const text = written(value, unit);
  if (!of) return html`<span class="amount">${text}</span>`;
  const part = value / of;
  return html`
    <span class="amount">
      ${text} of ${written(of, unit)}
      <meter
        class=${part >= 1 ? "full" : ""}
        min="0"
        max=${of}
        high=${0.8 * of}
        value=${Math.min(value, of)}
        aria-label=${label}
      ></meter>
    </span>
  `;
}

/** @param {number} value @param {string} unit */
function written(value, unit) {
  if (unit === "bytes") return bytes(value);
  if (unit === "seconds") return seconds(value);
  return unit ? `${number(value)} ${unit}` : number(value);
}
