// What a person does: one request, with one Idempotency-Key for as long as it is the same request.
import { announce } from "./announce.js";
import { ApiError, api, isUnderWay, newKey } from "./api.js";
import { useEffect, useRef, useState } from "./html.js";
import { beginChange } from "./live.js";

/**
 * @typedef {{
 *   method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
 *   path: string,
 *   params?: Record<string, string | number>,
 *   query?: import("./api.js").Query,
 *   body?: any,
 *   keyless?: boolean,
 *   exact?: boolean,
 * }} Call `keyless`: the API takes no Idempotency-Key for it. Where its answer is lost, the person is told. `exact`: as
 *   in `api.js`.
 */

/**
 * Whether the same key would only get this error again. Other refusals aren't kept by the API, and what came before
 * such a one may have been done: its answer is still to be had.
 * @param {unknown} error
 */
const isDecided = (error) => error instanceof ApiError && [404, 409, 422].includes(error.status) && !isUnderWay(error);

/** The keys of the requests that are under way: who leaves a page and comes back repeats such a one, by its text. */
const sent = /** @type {Map<string, string>} */ (new Map());

/**
 * A hook: runs a change. `key` is the Idempotency-Key that the next run has: a new one after an answer that decides it,
 * the same one until then.
 * @param {Call} call
 * @param {(answer: any) => void} [onDone] while the page is shown
 * @param {(answer: any) => void} [onAnswer] wherever the person is by then
 * @param {{ holds?: boolean }} [options] `holds`: the change goes on while an error is shown that doesn't decide it: what
 *   the page reads by then may have no place for that any more
 */
export function useAction(call, onDone, onAnswer, { holds = false } = {}) {
  const [state, setState] = useState(
    /** @type {{ running: boolean, error: any, answer: any }} */ ({ running: false, error: null, answer: undefined }),
  );
  const text = JSON.stringify(call);
  const keys = useRef({ text: "", key: "" });
  if (keys.current.text !== text && !state.running) keys.current = { text, key: sent.get(text) ?? newKey() };
  const here = useRef(true);
  const endChange = useRef(() => {});
  useEffect(() => {
    here.current = true;
    return () => {
      here.current = false;
      endChange.current();
    };
  }, []);

  const run = async () => {
    if (state.running) return;
    const { key } = keys.current;
    setState({ running: true, error: null, answer: undefined });
    const endLast = endChange.current;
    endChange.current = beginChange();
    endLast();
    let held = false;
    sent.set(text, key);
    try {
      const { method, path, body, params, query, keyless, exact } = call;
      const answer =
        method === "GET"
          ? await api.get(path, { params, query, exact })
          : await api.send(method, path, body, { params, query, key, keyless, exact });
      keys.current = { text: "", key: "" };
      onAnswer?.(answer);
      if (!here.current) return;
      setState({ running: false, error: null, answer });
      onDone?.(answer);
    } catch (error) {
      if (isDecided(error)) keys.current = { text: "", key: "" };
      if (!here.current) return;
      held = holds && !isDecided(error);
      setState({ running: false, error, answer: undefined });
      announce(error instanceof Error ? error.message : String(error), { urgent: true });
    } finally {
      sent.delete(text);
      if (!held) endChange.current();
    }
  };
  return { ...state, run, key: keys.current.key };
}
