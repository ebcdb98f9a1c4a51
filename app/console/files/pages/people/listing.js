// Lists that are read page by page, as a table.
import { api } from "../../api.js";
import { Empty } from "../../components/empty.js";
import { ErrorNote } from "../../components/error-note.js";
import { Table } from "../../components/table.js";
import { Fragment, html, useRef, useState } from "../../html.js";
import { resource } from "../../live.js";

const PAGE = 100;

/**
 * A list of the API as a table: the first page, read again every `every` milliseconds, and those that follow as they
 * come into sight. `empty` is what is said where there is nothing. `turn`: a change of it reads all anew.
 * @param {{
 *   path: string,
 *   label: string,
 *   columns: import("../../components/table.js").Column<any>[],
 *   params?: Record<string, string | number>,
 *   query?: import("../../api.js").Query,
 *   id?: (row: any) => string | number,
 *   empty: { title: string, children?: any, action?: any },
 *   every?: number,
 *   turn?: number,
 * }} props
 */
export function Listing({ path, label, columns, params, query, id = (row) => row.uuid ?? row.id, empty, every = 0, turn = 0 }) {
  const subject = JSON.stringify([path, params, query, turn]);
  const [further, setFurther] = useState({ subject, rows: /** @type {any[]} */ ([]), more: true });
  const busy = useRef(false);
  const { data, error, reload } = resource(
    (signal) => api.get(path, { params, query: { ...query, limit: PAGE }, signal }),
    [subject],
    { every },
  );
  const rest = further.subject === subject ? further : { rows: [], more: true };
  const first = data?.data ?? [];
  const known = new Set(first.map(id));
  const rows = [...first, ...rest.rows.filter((/** @type {any} */ row) => !known.has(id(row)))];
  const more = async () => {
    if (!data?.has_more || !rest.more || busy.current) return;
    busy.current = true;
    try {
      const page = await api.get(path, { params, query: { ...query, limit: PAGE, starting_after: String(id(rows.at(-1))) } });
      setFurther({ subject, rows: [...rest.rows, ...page.data], more: page.has_more });
    } finally {
      busy.current = false;
    }
  };
  return html`
    <${ErrorNote} error=${error} retry=${reload} />
    ${!data && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the list…</p>`}
    ${data && rows.length === 0 && html`<${Empty} title=${empty.title} action=${empty.action}>${empty.children}<//>`}
    ${rows.length > 0 && html`<${Table} label=${label} rows=${rows} id=${id} columns=${columns} onEnd=${more} />`}
  `;
}

/** Gives a text to the browser as a file. @param {string[]} parts @param {string} name @param {string} type */
export function save(parts, name, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/**
 * Names and their values.
 * @param {{ facts: [string, any][] }} props
 */
export function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts.map(([name, value]) => html`<${Fragment} key=${name}><dt>${name}</dt><dd>${value}</dd><//>`)}
  </dl>`;
}
