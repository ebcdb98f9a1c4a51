// Fields that more than one part of a database has.
import { Field } from "../../components/field.js";
import { html } from "../../html.js";

/**
 * @param {{
 *   fields: { name: string, pause?: boolean },
 *   onFields: (fields: any) => void,
 * }} props
 */
export function CloneFields({ fields, onFields }) {
  return html`
    <${Field} label="Name of the new database" value=${fields.name} onValue=${(/** @type {string} */ name) => onFields({ ...fields, name })} maxlength="63" autocomplete="off" spellcheck=${false} />
    ${fields.pause !== undefined &&
    html`<${Field}
      label="Copy at once where the host can"
      type="checkbox"
      value=${fields.pause}
      onValue=${(/** @type {boolean} */ pause) => onFields({ ...fields, pause })}
      hint="Then sessions of this database end, and new ones wait for 5 seconds at most."
    />`}
  `;
}
