import { html } from "../html.js";
import { Empty } from "./empty.js";
import { ErrorNote } from "./error-note.js";
import { Table } from "./table.js";

/**
 * A list of the API: as a table, or with `card` one beneath the other. `empty` is what is said where there is nothing.
 * @param {{
 *   list: import("../lists.js").List,
 *   label: string,
 *   columns?: import("./table.js").Column<any>[],
 *   card?: (row: any) => any,
 *   empty: { title: string, children?: any, action?: any },
 *   fixed?: boolean,
 * }} props `card`: draws a row, with its key. `fixed`: as `Table` has it.
 */
export function Listing({ list, label, columns = [], card, empty, fixed }) {
  const { rows, error } = list;
  return html`
    <${ErrorNote} error=${error} retry=${list.reload} />
    ${!rows && !error && html`<p class="page-loading" aria-busy="true"><span class="spinner"></span> Loading…</p>`}
    ${rows?.length === 0 && html`<${Empty} title=${empty.title} action=${empty.action}>${empty.children}<//>`}
    ${card && rows?.map(card)}
    ${card && rows && !list.complete && html`<button type="button" onClick=${list.more}>Show more</button>`}
    ${!card &&
    rows &&
    rows.length > 0 &&
    html`<${Table}
      label=${label}
      rows=${rows}
      id=${list.id}
      columns=${columns}
      fixed=${fixed}
      onEnd=${list.complete ? undefined : list.more}
      onRange=${list.inSight}
    />`}
  `;
}
