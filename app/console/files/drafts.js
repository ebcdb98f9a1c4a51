// What was written on a page and not saved waits there while its writer looks at other pages. It is in memory alone:
// who closes the tab, or loads it anew, is asked by the browser first.
import { useRef, useState } from "./html.js";
import { session } from "./session.js";

/** @type {Map<string, any>} */
const drafts = new Map();

/** @param {Event} event */
const ask = (event) => event.preventDefault();

/** @param {string} name @param {any} fields */
function keep(name, fields) {
  drafts.set(name, fields);
  addEventListener("beforeunload", ask);
}

/** @param {string} name */
function forget(name) {
  drafts.delete(name);
  if (drafts.size === 0) removeEventListener("beforeunload", ask);
}

// A browser may keep a page that was left, and show it again to who comes after the person.
addEventListener("pagehide", () => [...drafts.keys()].forEach(forget));

/**
 * A hook: the fields of a form. They begin as `saved`, or as this person left them under `name`; `found` says that.
 * `change` takes those that change, `discard` goes back to `saved`, and `forget` is for the moment when they are saved.
 * `round` changes with `discard`: a key for what reads its field once.
 * @template {object} Fields
 * @param {string} name
 * @param {Fields} saved
 */
export function useDraft(name, saved) {
  const key = `${session.value?.user.id} ${name}`;
  const first = useRef(saved);
  const [state, setState] = useState(() => ({
    fields: /** @type {Fields} */ (drafts.get(key) ?? saved),
    found: drafts.has(key),
    round: 0,
  }));
  const now = useRef(state.fields);
  const change = (/** @type {Partial<Fields>} */ changes) => {
    const fields = (now.current = { ...now.current, ...changes });
    if (JSON.stringify(fields) === JSON.stringify(first.current)) forget(key);
    else keep(key, fields);
    setState((before) => ({ ...before, fields }));
  };
  const discard = () => {
    forget(key);
    now.current = first.current;
    setState(({ round }) => ({ fields: first.current, found: false, round: round + 1 }));
  };
  return { ...state, change, discard, forget: () => forget(key) };
}
