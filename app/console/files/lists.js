// Lists of the API: read page by page as they are looked at, and what is in sight read again.
import { ApiError, api, isRefused } from "./api.js";
import { useEffect, useMemo, useState } from "./html.js";
import { isChanging, unchanging } from "./live.js";

const PAGE = 100;

/**
 * @typedef {{
 *   params?: Record<string, string | number>,
 *   query?: import("./api.js").Query,
 *   id?: (row: any) => string | number,
 *   every?: number,
 *   exact?: boolean,
 * }} ListOptions `id`: what the next page starts after, the row's `uuid` or `id` unless it is given. `every`: after
 *   how many milliseconds the rows in sight are read again, while the page is shown; 0 is never. `exact`: as in `api.js`.
 */
/**
 * @typedef {{
 *   rows: any[] | undefined,
 *   complete: boolean,
 *   error: any,
 *   id: (row: any) => string | number,
 *   more: () => void,
 *   inSight: (first: number) => void,
 *   reload: () => void,
 * }} List `rows`: undefined until the first page is there. `complete`: there are no more. `more` reads the next page,
 *   `reload` the first one again. `inSight` is told the first row in sight.
 */

/**
 * A hook: the list at a path of the API. Another path, parameter or query is another list.
 * @param {string} path
 * @param {ListOptions} [options]
 * @returns {List}
 */
export function useList(path, { params, query, id = idOf, every = 0, exact } = {}) {
  const list = useMemo(() => new PagedList(path, { params, query, id, exact }), [JSON.stringify([path, params, query])]);
  const [, drawn] = useState(0);
  useEffect(() => {
    list.onChange = () => drawn((one) => one + 1);
    list.read(0);
    return () => list.stop();
  }, [list]);
  useEffect(() => {
    if (!every) return;
    const again = () => document.hidden || list.refresh();
    const timer = setInterval(again, every);
    document.addEventListener("visibilitychange", again);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [list, every]);
  return {
    rows: list.rows,
    complete: !list.hasMore,
    error: list.error,
    id,
    more: () => list.more(),
    inSight: (first) => (list.first = first),
    reload: () => list.reload(),
  };
}

/** @param {any} row */
const idOf = (row) => row.uuid ?? row.id;

class PagedList {
  /** @param {string} path @param {ListOptions} options */
  constructor(path, { params, query, id = idOf, exact }) {
    this.path = path;
    this.params = params;
    this.query = query;
    this.id = id;
    this.exact = exact;
    /** @type {any[] | undefined} */
    this.rows = undefined;
    this.hasMore = true;
    /** @type {any} */
    this.error = null;
    this.first = 0;
    this.busy = false;
    this.stale = false;
    this.stopping = new AbortController();
    this.onChange = () => {};
  }

  stop() {
    this.stopping.abort(new DOMException("no longer looked at", "AbortError"));
  }

  more() {
    if (this.hasMore && this.rows) this.read(this.rows.length);
  }

  /** Reads the rows in sight again, unless a change is under way: that of a row shows there how it goes. */
  refresh() {
    if (!isChanging()) this.read(Math.min(Math.max(0, this.first - PAGE / 4), this.rows?.length ?? 0));
  }

  /** Reads the first page again. What is being read may be from before the change that somebody wants to see. */
  reload() {
    if (this.busy) this.stale = true;
    else this.read(0);
  }

  /** @param {number} from the first row that is read */
  async read(from) {
    if (this.busy || this.stopping.signal.aborted) return;
    this.busy = true;
    const before = from > 0 ? this.rows?.[from - 1] : undefined;
    try {
      const query = { ...this.query, limit: PAGE, starting_after: before && this.id(before) };
      const page = await api.get(this.path, { params: this.params, query, signal: this.stopping.signal, exact: this.exact });
      if (from < (this.rows?.length ?? 0)) await unchanging();
      this.put(from, page.data, page.has_more);
      this.error = null;
    } catch (fault) {
      if (this.stopping.signal.aborted) return;
      if (this.rows) await unchanging();
      // What is refused for anything else says nothing of that row.
      const gone = before && fault instanceof ApiError && fault.status === 422 && "starting_after" in fault.fields;
      if (gone) this.rows = this.rows?.filter((row) => row !== before);
      else if (isRefused(fault)) this.rows = undefined;
      this.error = gone ? null : fault;
    } finally {
      this.busy = false;
    }
    this.onChange();
    if (!this.stale) return;
    this.stale = false;
    this.read(0);
  }

  /**
   * In place of the rows that the page covers. Rows after it stay, if it ends at one of them.
   * @param {number} from @param {any[]} page @param {boolean} hasMore
   */
  put(from, page, hasMore) {
    /** @type {any[]} */
    const rows = this.rows ?? [];
    const last = page.at(-1);
    const end = hasMore && last ? rows.findIndex((row, at) => at >= from && this.id(row) === this.id(last)) : -1;
    const rest = end < 0 ? [] : rows.slice(end + 1);
    if (rest.length === 0) this.hasMore = hasMore;
    this.rows = [...rows.slice(0, from), ...page, ...rest];
  }
}
