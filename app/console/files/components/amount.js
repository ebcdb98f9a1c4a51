import { bytes, number, seconds } from "../format.js";
import { html } from "../html.js";

/**
 * A number with its unit. `unit`: "bytes" and "seconds" are written in the one that fits; any other follows the number.
 * `of` is a limit, and a bar shows the part that is used; with `aim` it is what there should be.
 * @param {{ value: number | null | undefined, unit?: string, of?: number | null, aim?: boolean, label?: string }} props
 */
export function Amount({ value, unit = "", of, aim = false, label = "Used" }) {
  if (value === null || value === undefined) return html`<span class="quiet">unknown</span>`;
  const text = written(value, unit);
  if (!of) return html`<span class="amount">${text}</span>`;
  return html`
    <span class="amount">
      ${text} of ${written(of, unit)}
      <meter
        min="0"
        max=${of}
        high=${0.8 * of}
        optimum=${aim ? of : 0}
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
