import { html } from "../html.js";
import { Field } from "./field.js";

/**
 * A choice of one row of a list that is read page by page. Where there are more than are read, they can be read on, and
 * found by name where `onFind` is given.
 * @param {{
 *   label: string,
 *   list: { rows: any[], error: any, loading: boolean, more?: () => void },
 *   option: (row: any) => { value: string, label: string, disabled?: boolean },
 *   value: string,
 *   onValue: (value: string) => void,
 *   none?: string,
 *   chosen?: string,
 *   find?: string,
 *   onFind?: (text: string) => void,
 *   hint?: any,
 *   error?: string | null,
 *   [other: string]: any,
 * }} props `none`: how the empty choice is called. `chosen`: how the chosen row is called where it isn't among those read.
 */
export function Choice({ label, list, option, value, onValue, none = "Choose", chosen = value, find = "", onFind, hint, error, ...others }) {
  const { rows, loading, more } = list;
  const options = rows.map(option);
  const known = !value || options.some((one) => one.value === value);
  const reading = loading && rows.length === 0;
  return html`
    ${onFind &&
    (more || find) &&
    html`<${Field} label=${`${label}: name begins with`} type="search" value=${find} onValue=${onFind} autocomplete="off" spellcheck="false" />`}
    <${Field}
      label=${label}
      value=${value}
      onValue=${onValue}
      error=${error ?? list.error?.message}
      hint=${hint}
      options=${[{ value: "", label: reading ? "Loading…" : none }, ...(known ? [] : [{ value, label: chosen }]), ...options]}
      ...${others}
    />
    ${more && html`<div class="buttons"><button type="button" class="small" onClick=${more}>More to choose from</button></div>`}
  `;
}
