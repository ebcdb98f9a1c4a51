import { html } from "../html.js";
import { Field } from "./field.js";

/**
 * A choice of one row of a list that is read page by page. Where there are more than are read, they can be read on, and
 * found by name where `onFind` is given.
 * @param {{
 *   label: string,
 *   list: Pick<import("../lists.js").List, "rows" | "error" | "complete" | "more">,
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
  const options = (list.rows ?? []).map(option);
  const more = list.rows && !list.complete;
  const known = !value || options.some((one) => one.value === value);
  return html`
    ${onFind &&
    (more || find) &&
    html`<${Field} label=${`${label}: name begins with`} type="search" value=${find} onValue=${onFind} autocomplete="off" spellcheck=${false} />`}
    <${Field}
      label=${label}
      value=${value}
      onValue=${onValue}
      error=${error ?? list.error?.message}
      hint=${hint}
      options=${[{ value: "", label: !list.rows && !list.error ? "Loading…" : none }, ...(known ? [] : [{ value, label: chosen }]), ...options]}
      ...${others}
    />
    ${more && html`<div class="buttons"><button type="button" class="small" onClick=${list.more}>More to choose from</button></div>`}
  `;
}
