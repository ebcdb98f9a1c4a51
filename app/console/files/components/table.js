import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";

/**
 * @template Row
 * @typedef {{
 *   label: string,
 *   cell: (row: Row) => any,
 *   class?: string,
 *   wide?: boolean,
 *   note?: string,
 * }} Column `wide`: left out on a phone. `note`: stands under the label. `class`: `number` aligns to the right, `main` takes the room that is left.
 */

const VIRTUAL_FROM = 60;
const ROW_HEIGHT = 44;
const MORE = 12;

/**
 * A table. Of a long list only the rows in sight are in the page; the arrow keys, Home and End go from row to row, to
 * the first link or button of each. `onEnd` is called when the end comes near, for lists that are read page by page.
 * @template Row
 * @param {{
 *   label: string,
 *   columns: Column<Row>[],
 *   rows: Row[],
 *   id: (row: Row) => string | number,
 *   fixed?: boolean,
 *   scrolls?: boolean,
 *   onEnd?: () => void,
 *   onRange?: (first: number, last: number) => void,
 * }} props `fixed`: columns have the width of their class, so that nothing moves when other rows come in sight.
 *   `scrolls`: it may be wider than the page, and the arrow keys move it. `onRange`: told which rows are in sight.
 */
export function Table({ label, columns, rows, id, fixed = false, scrolls = false, onEnd, onRange }) {
  const body = useRef(/** @type {HTMLTableSectionElement | null} */ (null));
  const long = rows.length > VIRTUAL_FROM;
  const [first, last] = useSight(body, rows.length, long);
  const [focused, setFocused] = useState(-1);
  const wanted = useRef(-1);

  useEffect(() => {
    onRange?.(first, last);
    if (onEnd && last >= rows.length - 1 - MORE) onEnd();
  }, [first, last, rows.length]);

  useLayoutEffect(() => {
    if (wanted.current < 0) return;
    const target = body.current?.querySelector(`tr[data-at="${wanted.current}"] :is(a, button)`);
    if (!(target instanceof HTMLElement)) return;
    wanted.current = -1;
    target.focus();
    target.closest("tr")?.scrollIntoView({ block: "nearest" });
  });

  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    // In a field they are the field's, and a dialog that a row has opened is in that row.
    const own = event.target instanceof Element && event.target.matches("a, button") && !event.target.closest("dialog");
    const row = own ? /** @type {Element} */ (event.target).closest("tr[data-at]") : null;
    if (!(row instanceof HTMLElement)) return;
    const at = Number(row.dataset.at);
    const end = rows.length - 1;
    const goal = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: end }[event.key];
    if (goal === undefined || goal < 0 || goal > end) return;
    event.preventDefault();
    wanted.current = goal;
    setFocused(goal);
  };
  const onFocusIn = (/** @type {FocusEvent} */ event) => {
    const row = event.target instanceof Element ? event.target.closest("tr[data-at]") : null;
    if (row instanceof HTMLElement) setFocused(Number(row.dataset.at));
  };

  return html`
    <div
      class="table-scroll"
      tabindex=${scrolls ? 0 : -1}
      role=${scrolls ? "region" : undefined}
      aria-label=${scrolls ? label : undefined}
    >
      <table class=${long || fixed ? "fixed" : ""} aria-rowcount=${onEnd ? -1 : rows.length + 1}>
        <caption class="visually-hidden">${label}</caption>
        <thead>
          <tr aria-rowindex="1">
            ${columns.map((column) => html`<th key=${column.label} scope="col" class=${classes(column)}>${column.label}${column.note && html` <div class="note">${column.note}</div>`}</th>`)}
          </tr>
        </thead>
        <tbody ref=${body} onKeyDown=${onKeyDown} onFocusIn=${onFocusIn}>
          ${drawn()}
        </tbody>
      </table>
    </div>
  `;

  /** The rows in sight and the one with the focus; what is left out between them is one row of the same height. */
  function drawn() {
    const shown = [];
    for (let at = first; at <= last; at += 1) shown.push(at);
    if (focused >= 0 && focused < rows.length && (focused < first || focused > last)) shown.push(focused);
    shown.sort((one, other) => one - other);
    const parts = [];
    let next = 0;
    for (const at of [...shown, rows.length]) {
      if (at > next) parts.push(html`<${Gap} key=${`gap-${parts.length ? (at === rows.length ? "end" : "middle") : "start"}`} rows=${at - next} />`);
      if (at < rows.length) parts.push(drawRow(rows[at], at));
      next = at + 1;
    }
    return parts;
  }

  /** @param {Row} row @param {number} at */
  function drawRow(row, at) {
    return html`<tr key=${id(row)} data-at=${at} aria-rowindex=${at + 2}>
      ${columns.map((column) => html`<td key=${column.label} class=${classes(column)}>${column.cell(row)}</td>`)}
    </tr>`;
  }
}

/** @param {Column<any>} column */
const classes = (column) => [column.class, column.wide && "wide"].filter(Boolean).join(" ") || undefined;

/** @param {{ rows: number }} props */
function Gap({ rows }) {
  const row = useRef(/** @type {HTMLTableRowElement | null} */ (null));
  useLayoutEffect(() => {
    row.current?.style.setProperty("height", `${rows * ROW_HEIGHT}px`);
  }, [rows]);
  return html`<tr ref=${row} class="gap" aria-hidden="true"></tr>`;
}

/**
 * A hook: the first and the last row in sight, with some more on both sides.
 * @param {{ current: HTMLElement | null }} body
 * @param {number} count
 * @param {boolean} long
 */
function useSight(body, count, long) {
  const [sight, setSight] = useState([0, VIRTUAL_FROM]);
  useEffect(() => {
    if (!long) return;
    let asked = 0;
    const look = () => {
      asked = 0;
      if (!body.current) return;
      const above = -body.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(above / ROW_HEIGHT) - MORE);
      const to = Math.ceil((above + innerHeight) / ROW_HEIGHT) + MORE;
      setSight((was) => (was[0] === from && was[1] === to ? was : [from, to]));
    };
    const soon = () => (asked ||= requestAnimationFrame(look));
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    look();
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
    };
  }, [long]);
  return long ? [Math.min(sight[0], count - 1), Math.min(sight[1], count - 1)] : [0, count - 1];
}
