// Lists that are read page by page.
import { api } from "../api.js";
import { useEffect, useState } from "../html.js";

/**
 * A hook: the rows of a list, the first page at once, the next when `more` is called. Read anew when the query changes.
 * @param {string} path
 * @param {{ params?: Record<string, string | number>, query?: import("../api.js").Query, id?: string }} [options]
 * @returns {{ rows: any[], error: any, loading: boolean, reload: () => void, more: (() => void) | undefined }}
 */
export function useList(path, options = {}) {
  const subject = JSON.stringify([path, options]);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(/** @type {any} */ ({ rows: [], error: null, loading: true }));

  useEffect(() => {
    const stop = new AbortController();
    const pages = api.pages(path, { ...options, signal: stop.signal });
    const next = async () => {
      setState((/** @type {any} */ was) => ({ ...was, loading: true, more: undefined }));
      try {
        const page = await pages.next();
        if (stop.signal.aborted) return;
        setState((/** @type {any} */ was) => {
          const rows = [...(was.of === subject && was.turn === turn ? was.rows : []), ...(page.value ?? [])];
          const more = !page.done && page.value.length === 100 ? next : undefined;
          return { of: subject, turn, rows, error: null, loading: false, more };
        });
      } catch (error) {
        if (!stop.signal.aborted) setState((/** @type {any} */ was) => ({ ...was, error, loading: false }));
      }
    };
    next();
    return () => stop.abort(new DOMException("no longer asked for", "AbortError"));
  }, [subject, turn]);
  return { ...state, rows: state.of === subject || !state.of ? state.rows : [], reload: () => setTurn((one) => one + 1) };
}
