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

/** In milliseconds. The API knows a key for 24 hours; but after some time the same change is meant as another one. */
const KEPT = 2 * 3600_000;

/**
 * The requests that no answer has decided yet: who leaves a page, or closes a dialog, and comes back repeats such a one with
 * its key. They are found by their digests, for a request may hold secrets. `thing` is what is changed, undefined for
 * something new; `over`: its answer, or that there is none, left it undecided.
 */
const sent = /** @type {Map<string, { key: string, at: number, thing: unknown, over: boolean }>} */ (new Map());

/** The key with which this was sent. @param {string} text of a request @returns {string | undefined} */
function sentKey(text) {
  for (const [digest, { at }] of sent) if (at < Date.now() - KEPT) sent.delete(digest);
  return sent.size > 0 ? sent.get(digestOf(text))?.key : undefined;
}

/**
 * The thing was changed: to ask again for what was asked before that, such as to pause what was resumed, is another change.
 * @param {unknown} thing
 */
function forgetFor(thing) {
  for (const [digest, one] of sent) if (thing !== undefined && one.thing === thing && one.over) sent.delete(digest);
}

/**
 * Two different texts have the same one by an accident that nobody will see. Not crypto.subtle, which only pages over TLS
 * or from this machine have, and which answers later.
 * @param {string} text
 */
function digestOf(text) {
  let [one, other] = [0, 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 0x9e3779b1);
    other = Math.imul(other + code, 0x85ebca6b) ^ (other >>> 15);
  }
  return `${text.length} ${one} ${other}`;
}

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
  if (keys.current.text !== text && !state.running) keys.current = { text, key: sentKey(text) ?? newKey() };
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
    const key = sentKey(text) ?? keys.current.key;
    setState({ running: true, error: null, answer: undefined });
    const endLast = endChange.current;
    endChange.current = beginChange();
    endLast();
    let held = false;
    const digest = digestOf(text);
    const [id] = Object.values(call.params ?? {});
    const thing = id === undefined ? undefined : `${call.path.split("{")[0]}${id}`;
    const request = { key, at: Date.now(), thing, ...sent.get(digest), over: false };
    if (!call.keyless) sent.set(digest, request);
    const decided = () => {
      sent.delete(digest);
      keys.current = { text: "", key: "" };
    };
    try {
      const { method, path, body, params, query, keyless, exact } = call;
      const answer =
        method === "GET"
          ? await api.get(path, { params, query, exact })
          : await api.send(method, path, body, { params, query, key, keyless, exact });
      decided();
      forgetFor(thing);
      onAnswer?.(answer);
      if (!here.current) return;
      setState({ running: false, error: null, answer });
      onDone?.(answer);
    } catch (error) {
      if (isDecided(error)) decided();
      request.over = true;
      if (!here.current) return;
      held = holds && !isDecided(error);
      setState({ running: false, error, answer: undefined });
      announce(error instanceof Error ? error.message : String(error), { urgent: true });
    } finally {
      if (!held) endChange.current();
    }
  };
  return { ...state, run, key: keys.current.key };
}
