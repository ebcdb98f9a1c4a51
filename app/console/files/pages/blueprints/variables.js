// Variables of a blueprint: declared by who writes it, filled in by who applies it.
import { Field } from "../../components/field.js";
import { typedNumber } from "../../exact.js";
import { html } from "../../html.js";

const TYPES = ["identifier", "string", "integer", "number", "boolean", "enum"];
const NUMBERS = ["integer", "number"];
const TEXTS = ["identifier", "string"];

/** @typedef {{ name: string, type: string, default: string, optional: boolean, secret: boolean, [bound: string]: any }} Row */

/** The definitions of the API as rows of a form. @param {Record<string, any> | null | undefined} definitions @returns {Row[]} */
export function declarable(definitions) {
  return Object.entries(definitions ?? {}).map(([name, one]) => ({
    ...one,
    name,
    default: one.default === undefined ? "" : String(one.default),
    values: one.values?.join("\n") ?? "",
    optional: one.required === false,
    secret: one.secret ?? false,
  }));
}

/** And back; null where nothing is declared. @param {Row[]} rows @returns {Record<string, any> | null} */
export function declared(rows) {
  const named = rows.filter((row) => row.name);
  if (named.length === 0) return null;
  return Object.fromEntries(named.map((row) => [row.name, definition(row)]));
}

/** @param {Row} row */
function definition(row) {
  const { type } = row;
  const known = (/** @type {string} */ name) => row[name] !== undefined && row[name] !== "";
  return {
    type,
    ...(row.default !== "" && { default: typed(type, row.default) }),
    ...(row.optional && { required: false }),
    ...(row.secret && { secret: true }),
    ...(TEXTS.includes(type) && known("pattern") && { pattern: row.pattern }),
    ...(TEXTS.includes(type) && known("max_length") && { max_length: typed("integer", String(row.max_length)) }),
    ...(NUMBERS.includes(type) && known("min") && { min: typed("number", String(row.min)) }),
    ...(NUMBERS.includes(type) && known("max") && { max: typed("number", String(row.max)) }),
    ...(type === "enum" && { values: String(row.values ?? "").split("\n").filter(Boolean) }),
  };
}

/**
 * What was typed as a value of that type. What is none stays a text, and the API says what is wrong with it.
 * @param {string} type
 * @param {string} text
 */
export function typed(type, text) {
  if (NUMBERS.includes(type)) return typedNumber(text, type === "integer").value;
  if (type === "boolean") return text === "true" ? true : text === "false" ? false : text;
  return text;
}

/** What keeps a number from being sent as it was typed. @param {string} type @param {string} text */
const problemOf = (type, text) => (NUMBERS.includes(type) ? typedNumber(text, type === "integer").problem : undefined);

/**
 * @param {{ variables: Row[], onVariables: (rows: Row[]) => void, found: string[], error?: string }} props `found`: the
 *   placeholders in the SQL.
 */
export function Declarations({ variables, onVariables, found, error }) {
  const missing = found.filter((name) => !variables.some((row) => row.name === name));
  const add = (/** @type {string} */ name) =>
    onVariables([...variables, { name, type: "identifier", default: "", optional: false, secret: false }]);
  const change = (/** @type {number} */ at, /** @type {object} */ to) =>
    onVariables(variables.map((row, index) => (index === at ? { ...row, ...to } : row)));
  return html`
    <fieldset class="declarations">
      <legend>Variables</legend>
      ${variables.length === 0 && html`<p class="quiet">None is declared. Write {{name}} in the SQL and declare it here.</p>`}
      ${variables.map(
        (row, at) => html`<div class="panel" key=${at} role="group" aria-label=${`Variable ${row.name}`}>
          <div class="filters">
            <${Field} label="Name" value=${row.name} onValue=${(/** @type {string} */ name) => change(at, { name })} autocomplete="off" spellcheck=${false} />
            <${Field} label="Type" value=${row.type} options=${TYPES} onValue=${(/** @type {string} */ type) => change(at, { type })} />
            <${Field} label="Default" value=${row.default} onValue=${(/** @type {string} */ text) => change(at, { default: text })} error=${problemOf(row.type, row.default)} autocomplete="off" />
            ${TEXTS.includes(row.type) &&
            html`<${Field} label="Pattern" value=${row.pattern ?? ""} onValue=${(/** @type {string} */ pattern) => change(at, { pattern })} spellcheck=${false} />`}
            ${TEXTS.includes(row.type) && bound(at, row, "max_length", "Most characters")}
            ${NUMBERS.includes(row.type) && bound(at, row, "min", "Least")} ${NUMBERS.includes(row.type) && bound(at, row, "max", "Most")}
            ${row.type === "enum" &&
            html`<${Field} label="Values, one a line" value=${row.values ?? ""} rows="3" onValue=${(/** @type {string} */ values) => change(at, { values })} />`}
          </div>
          <div class="filters">
            <${Field} type="checkbox" label="May be left out" value=${row.optional} onValue=${(/** @type {boolean} */ optional) => change(at, { optional })} />
            <${Field} type="checkbox" label="Secret" value=${row.secret} onValue=${(/** @type {boolean} */ secret) => change(at, { secret })} />
            <button type="button" class="small" onClick=${() => onVariables(variables.filter((_, index) => index !== at))}>
              Remove<span class="visually-hidden"> ${row.name}</span>
            </button>
          </div>
        </div>`,
      )}
      ${error && html`<p class="field-error">${error}</p>`}
      <div class="buttons">
        ${missing.map((name) => html`<button key=${name} type="button" onClick=${() => add(name)}>Declare ${name}</button>`)}
        <button type="button" onClick=${() => add("")}>Another variable</button>
      </div>
    </fieldset>
  `;

  /** @param {number} at @param {Row} row @param {string} name @param {string} label */
  function bound(at, row, name, label) {
    return html`<${Field} label=${label} value=${row[name] ?? ""} inputmode="decimal" onValue=${(/** @type {string} */ text) => change(at, { [name]: text })} error=${problemOf("number", String(row[name] ?? ""))} />`;
  }
}

/**
 * The values to send: only those that were filled in.
 * @param {Record<string, any> | null} definitions
 * @param {Record<string, string>} texts
 */
export function valuesOf(definitions, texts) {
  const filled = Object.entries(definitions ?? {}).filter(([name]) => (texts[name] ?? "") !== "");
  return Object.fromEntries(filled.map(([name, { type }]) => [name, typed(type, texts[name])]));
}

/**
 * A field for each declared variable.
 * @param {{
 *   definitions: Record<string, any> | null,
 *   texts: Record<string, string>,
 *   onTexts: (texts: Record<string, string>) => void,
 *   errors: Record<string, string>,
 * }} props
 */
export function Values({ definitions, texts, onTexts, errors }) {
  return Object.entries(definitions ?? {}).map(([name, one]) => {
    const needed = one.required ?? one.default === undefined;
    const bounds = [
      one.type,
      one.default !== undefined && `default ${one.default}`,
      one.min !== undefined && `from ${one.min}`,
      one.max !== undefined && `to ${one.max}`,
      one.max_length !== undefined && `at most ${one.max_length} characters`,
      one.pattern && `matching ${one.pattern}`,
      !needed && one.default === undefined && "NULL when left empty",
    ];
    const choices = one.type === "boolean" ? ["true", "false"] : one.values;
    return html`<${Field}
      key=${name}
      label=${name}
      type=${one.secret ? "password" : "text"}
      autocomplete="off"
      spellcheck=${false}
      required=${needed}
      inputmode=${NUMBERS.includes(one.type) ? "decimal" : undefined}
      options=${choices && !one.secret ? [{ value: "", label: needed ? "Choose" : "Not given" }, ...choices] : undefined}
      value=${texts[name] ?? ""}
      onValue=${(/** @type {string} */ text) => onTexts({ ...texts, [name]: text })}
      hint=${bounds.filter(Boolean).join(", ")}
      error=${errors[`variables.${name}`] ?? problemOf(one.type, texts[name] ?? "")}
    />`;
  });
}
