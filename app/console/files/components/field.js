import { html, useId } from "../html.js";

/**
 * A field of a form: its label, a hint, and what is wrong with it. `options` makes it a choice, `rows` a large text,
 * `type="checkbox"` a box to tick. Other properties are the element's own.
 * @param {{
 *   label: string,
 *   value: any,
 *   onValue: (value: any) => void,
 *   hint?: any,
 *   error?: string | null,
 *   type?: string,
 *   options?: (string | { value: string, label: string, disabled?: boolean })[],
 *   rows?: number,
 *   [other: string]: any,
 * }} props
 */
export function Field({ label, value, onValue, hint, error, type = "text", options, rows, ...others }) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const common = { id, "aria-describedby": described, "aria-invalid": error ? "true" : undefined, ...others };
  const set = (/** @type {any} */ event) => onValue(type === "checkbox" ? event.target.checked : event.target.value);
  return html`
    <div class=${`field ${type === "checkbox" ? "tick" : ""}`}>
      <label for=${id}>${label}</label>
      ${control()}
      ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
      ${error && html`<p class="field-error" id=${`${id}-error`}>${error}</p>`}
    </div>
  `;

  function control() {
    if (options) {
      return html`<select ...${common} value=${value} onChange=${set}>
        ${options.map((one) => {
          const choice = typeof one === "string" ? { value: one, label: one } : one;
          return html`<option key=${choice.value} value=${choice.value} disabled=${choice.disabled}>${choice.label}</option>`;
        })}
      </select>`;
    }
    if (rows) return html`<textarea ...${common} rows=${rows} value=${value} onInput=${set}></textarea>`;
    if (type === "checkbox") return html`<input ...${common} type="checkbox" checked=${value} onChange=${set} />`;
    return html`<input ...${common} type=${type} value=${value} onInput=${set} />`;
  }
}
