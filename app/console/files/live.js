// What changes while it is looked at: Server-Sent Events, and reading again.
import { address, connection, isRefused, refusals, wait } from "./api.js";
import { signal as makeSignal, useEffect, useRef, useState } from "./html.js";

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 10000;

export { connection };

/**
 * Follows a stream of events below `/api/v1` until it ends or `signal` says so. Comes back after each loss with the id
 * of the last event. A hidden page follows nothing: a browser has six connections to a server, for all of its tabs.
 * @param {string} path such as `/operations/{uuid}/events`
 * @param {(event: { id: string, event: string, data: any }) => void} onEvent
 * @param {{ params?: Record<string, string | number>, signal: AbortSignal }} options
 * @returns {Promise<void>} when there is nothing more to come
 */
export async function live(path, onEvent, { params, signal }) {
  const url = address(path, { params });
  let lastId = "";
  let pause = FIRST_PAUSE;
  const keep = (/** @type {{ id: string, event: string, data: any }} */ event) => {
    lastId = event.id || lastId;
    pause = FIRST_PAUSE;
    onEvent(event);
  };
  while (!signal.aborted) {
    await shown(signal);
    const over = await follow(url, lastId, keep, signal);
    if (over) return;
    await wait(pause, signal);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  }
}

/**
 * One connection. True when there is nothing to come back for.
 * @param {string} url
 * @param {string} lastId
 * @param {(event: { id: string, event: string, data: any }) => void} onEvent
 * @param {AbortSignal} signal
 */
async function follow(url, lastId, onEvent, signal) {
  const ends = new AbortController();
  const end = () => ends.abort();
  const hidden = () => document.hidden && end();
  signal.addEventListener("abort", end, { once: true });
  document.addEventListener("visibilitychange", hidden);
  try {
    const headers = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
    const response = await fetch(url, { headers, credentials: "same-origin", signal: ends.signal });
    if (response.status === 204) return true;
    if (response.status === 401) refusals.value += 1;
    if (!response.ok || !response.body) {
      if (response.status >= 500) connection.value = "lost";
      // A refusal stays one, but for "too many".
      return response.status < 500 && response.status !== 429;
    }
    connection.value = "ok";
    await readEvents(response.body, onEvent);
  } catch {
    if (!ends.signal.aborted) connection.value = "lost";
  } finally {
    signal.removeEventListener("abort", end);
    document.removeEventListener("visibilitychange", hidden);
    end();
  }
  return false;
}

/**
 * WHATWG HTML, section 9.2.6, for what our API sends: lines end with a line feed.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: { id: string, event: string, data: any }) => void} onEvent
 */
async function readEvents(body, onEvent) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (buffer + decoder.decode(value, { stream: true })).split("\n\n");
    buffer = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = { id: "", event: "message", data: "" };
      for (const line of block.split("\n")) {
        const [, name, text] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
        if (name === "data") event.data += text;
        else if (name === "id" || name === "event") event[name] = text;
      }
      if (event.data) onEvent({ ...event, data: JSON.parse(event.data) });
    }
  }
}

/** @param {AbortSignal} signal */
function shown(signal) {
  return new Promise((done) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      done(undefined);
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

const changes = makeSignal(0);

/**
 * Begins a change on the page that is shown, which ends by the function that this returns. Until then the page reads
 * nothing again, and shows nothing that it has: without its database it could not show how the deletion went.
 */
export function beginChange() {
  let open = true;
  changes.value += 1;
  return () => {
    if (open) changes.value -= 1;
    open = false;
  };
}

/** Whether a change is under way. */
export const isChanging = () => changes.value > 0;

/** Waits until no change is under way. */
export const unchanging = () =>
  new Promise((done) => {
    const stop = changes.subscribe((count) => count || queueMicrotask(() => done(stop())));
  });

/**
 * A hook: what `load` gives, read again when `deps` change, when `reload` is called, and every `every` milliseconds
 * while the page is shown, unless it is being read by then: what takes longer than that would never be shown. What is
 * there stays until the next is, or the API says that the person may not see it.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {unknown[]} [deps]
 * @param {{ every?: number }} [options]
 * @returns {{ data: T | undefined, error: any, loading: boolean, reload: () => void }}
 */
export function useResource(load, deps = [], { every = 0 } = {}) {
  const [state, setState] = useState(
    /** @type {{ data: T | undefined, error: any, loading: boolean }} */ ({
      data: undefined,
      error: null,
      loading: true,
    }),
  );
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const subject = useRef(JSON.stringify(deps));
  const reading = useRef(false);

  useEffect(() => {
    const stop = new AbortController();
    reading.current = true;
    const other = JSON.stringify(deps) !== subject.current;
    subject.current = JSON.stringify(deps);
    // Of another subject nothing may be shown.
    setState((was) => ({ data: other ? undefined : was.data, error: other ? null : was.error, loading: true }));
    const show = async (/** @type {(was: typeof state) => typeof state} */ next) => {
      if (state.data !== undefined && !other) await unchanging();
      if (stop.signal.aborted) return;
      reading.current = false;
      setState(next);
    };
    latest.current(stop.signal).then(
      (data) => show(() => ({ data, error: null, loading: false })),
      (error) => show((was) => ({ data: isRefused(error) ? undefined : was.data, error, loading: false })),
    );
    return () => stop.abort(new DOMException("no longer asked for", "AbortError"));
  }, [...deps, turn]);

  useEffect(() => {
    if (!every) return;
    const again = () => document.hidden || isChanging() || reading.current || setTurn((one) => one + 1);
    const timer = setInterval(again, every);
    document.addEventListener("visibilitychange", again);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [every]);

  return { ...state, reload: () => setTurn((one) => one + 1) };
}

/** Whether an operation goes on no more. @param {{ status: string }} operation */
export const ended = ({ status }) => ["succeeded", "failed", "cancelled"].includes(status);

/**
 * A hook: an operation as it is now, followed until its end.
 * @param {string | null | undefined} uuid
 * @returns {import("./api.js").Schemas["OperationView"] | undefined}
 */
export function useOperation(uuid) {
  const [operation, setOperation] = useState(/** @type {any} */ (undefined));
  useEffect(() => {
    setOperation(undefined);
    if (!uuid) return;
    const stop = new AbortController();
    live("/operations/{uuid}/events", ({ data }) => setOperation(data), {
      params: { uuid },
      signal: stop.signal,
    }).catch(() => {});
    return () => stop.abort(new DOMException("no longer looked at", "AbortError"));
  }, [uuid]);
  return operation;
}
