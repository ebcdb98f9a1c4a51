// What was written on a page and not saved waits there while its writer looks at other pages. It is in memory alone:
// who closes the tab, or loads it anew, is asked by the browser first.
import { signal, useRef, useState } from "./html.js";
import { session } from "./session.js";

const drafts = signal(/** @type {ReadonlyMap<string, any>} */ (new Map()));

/** @param {Event} event */
const ask = (event) => event.preventDefault();

/** @param {any} one @param {any} other */
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** @param {string} name @param {any} fields */
function keep(name, fields) {
  drafts.value = new Map(drafts.value).set(name, fields);
  addEventListener("beforeunload", ask);
}

/** @param {string} name */
function forget(name) {
  drafts.value = new Map([...drafts.value].filter(([kept]) => kept !== name));
  if (drafts.value.size === 0) removeEventListener("beforeunload", ask);
}

// A browser may keep a page that was left, and show it again to who comes after the person.
addEventListener("pagehide", () => [...drafts.value.keys()].forEach(forget));

/**
 * A hook: the fields of a form. They begin as `initial`, or as this person left them under `name`; `found` says that.
 * `change` takes those that change, and `discard` goes back to `initial`. `saved` takes those that have been saved, also
 * when the form is left by then: what was written since stays a draft. `round` changes with `discard`: a key for what
 * reads its field once.
 * @template {object} Fields
 * @param {string} name
 * @param {Fields} initial
 */
export function useDraft(name, initial) {
  const key = `${session.value?.user.id} ${name}`;
  const first = useRef(initial);
  const [state, setState] = useState(() => {
    // It was saved, but its answer was lost.
    if (same(drafts.peek().get(key), initial)) forget(key);
    const left = drafts.peek().get(key);
    return { fields: /** @type {Fields} */ (left ?? initial), found: left !== undefined, round: 0 };
  });
  const now = useRef(state.fields);
  const change = (/** @type {Partial<Fields>} */ changes) => {
    const fields = (now.current = { ...now.current, ...changes });
    if (same(fields, first.current)) forget(key);
    else keep(key, fields);
    setState((before) => ({ ...before, fields }));
  };
  const discard = () => {
    forget(key);
    now.current = first.current;
    setState(({ round }) => ({ fields: first.current, found: false, round: round + 1 }));
  };
  const saved = (/** @type {Fields} */ fields) => {
    if (same(drafts.peek().get(key), fields)) forget(key);
  };
  return { ...state, found: state.found && drafts.value.has(key), change, discard, saved };
}
