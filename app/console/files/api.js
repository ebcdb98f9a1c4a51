// The public API, for a session's cookie. Each change has an Idempotency-Key, so an attempt whose answer was lost is
// repeated with the same key, and nothing is done twice.
import { withTexts } from "./exact.js";
import { signal } from "./html.js";

/** @typedef {import("../types/api.js").paths} Paths */
/** @typedef {import("../types/api.js").components["schemas"]} Schemas */
/** @typedef {Record<string, string | number | boolean | string[] | null | undefined>} Query */
/**
 * @typedef {{ params?: Record<string, string | number>, query?: Query, signal?: AbortSignal, exact?: boolean }} ReadOptions
 *   `exact`: whole numbers beyond 2^53, which would be changed, are texts in the answer.
 */
/** @typedef {ReadOptions & { key?: string, keyless?: boolean }} SendOptions */
/** @typedef {RequestInit & { exact?: boolean }} Asked */

const ROOT = "/api/v1";
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 5000;
const AWAY = [502, 503, 504];
/** How often a change is repeated whose first attempt is under way: for about a minute. */
const MOST_WAITS = 15;

/**
 * Whether the API answers: `lost` from the first attempt without an answer to the next answer.
 * @type {import("./vendor/signals.js").Signal<"ok" | "lost">}
 */
export const connection = signal(/** @type {"ok" | "lost"} */ ("ok"));

/** Counts the changes whose first attempt is still under way, and whose answer is waited for. */
export const waiting = signal(0);

/** Counts the answers that nobody is signed in. */
export const refusals = signal(0);

/** An answer that is an error. */
export class ApiError extends Error {
  /** @param {number} status @param {any} answer @param {string} requestId */
  constructor(status, answer, requestId) {
    const error = answer?.error ?? {};
    super(error.message ?? `The answer's status is ${status}.`);
    this.name = "ApiError";
    this.status = status;
    /** @type {string} */
    this.code = error.code ?? `status_${status}`;
    /** @type {string} */
    this.requestId = answer?.request_id ?? requestId;
    /** @type {Record<string, any>} */
    this.details = error.details ?? {};
    /** What is wrong with which field, for forms. @type {Record<string, string>} */
    this.fields = typeof this.details.field === "string" ? { [this.details.field]: this.message } : {};
  }
}

/** No answer came to what isn't repeated: nobody knows whether it was done. */
export class NoAnswer extends Error {
  constructor() {
    super("No answer came: it may have been done, or not. Look before you do it again.");
  }
}

/** Whether the API shows this to the person no more: they have left the team, or it is gone. @param {unknown} error */
export const isRefused = (error) => error instanceof ApiError && [403, 404].includes(error.status);

/**
 * Whether it says that the first attempt with this Idempotency-Key is still under way, be it by a process that has died:
 * then another one goes on with it soon.
 * @param {unknown} error
 */
export const isUnderWay = (error) => error instanceof ApiError && error.code === "idempotency_key_in_progress";

/** A fresh Idempotency-Key: one for each thing that a person does. */
export function newKey() {
  // Not crypto.randomUUID(), which only pages over TLS or from this machine have.
  const random = crypto.getRandomValues(new Uint8Array(16));
  random[6] = (random[6] & 0x0f) | 0x40;
  random[8] = (random[8] & 0x3f) | 0x80;
  const hex = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * The address of a path such as `/databases/{uuid}`, below `/api/v1`.
 * @param {string} path
 * @param {ReadOptions} [options]
 */
export function address(path, { params = {}, query = {} } = {}) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(params[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") search.append(name, String(one));
    }
  }
  const text = search.toString();
  return ROOT + filled + (text && `?${text}`);
}

export const api = {
  /**
   * The whole answer: `{ data, request_id, … }`.
   * @type {{
   *   <P extends import("./api-types.js").ReadPath>(path: P, options?: ReadOptions):
   *     Promise<import("./api-types.js").Answer<P, "get">>,
   *   (path: string, options?: ReadOptions): Promise<any>,
   * }}
   */
  get: (/** @type {string} */ path, /** @type {ReadOptions} */ options = {}) =>
    request("GET", address(path, options), { signal: options.signal, exact: options.exact }),

  /**
   * A change; the whole answer. `key` is that of the person's action; without one it is a new one. `keyless`: the API
   * takes no key for it, so it is never repeated by itself.
   * @param {"POST" | "PUT" | "PATCH" | "DELETE"} method
   * @param {string} path
   * @param {object | null} [body]
   * @param {SendOptions} [options]
   * @returns {Promise<any>}
   */
  send(method, path, body = null, { key = newKey(), keyless = false, signal: stop, exact, ...where } = {}) {
    const init = {
      signal: stop,
      exact,
      headers: { "Idempotency-Key": key, ...(body && { "Content-Type": "application/json" }) },
      body: body && JSON.stringify(body),
    };
    return keyless ? requestOnce(method, address(path, where), init) : request(method, address(path, where), init);
  },

  /**
   * The pages of a list, one after the other; `id` names what the next page starts after.
   * @param {string} path
   * @param {ReadOptions & { id?: string }} [options]
   * @returns {AsyncGenerator<any[]>}
   */
  async *pages(path, { id, query = {}, ...options } = {}) {
    /** @type {string | number | undefined} */
    let after;
    for (let more = true; more; ) {
      /** @type {{ data: any[], has_more: boolean }} */
      const page = await api.get(path, { ...options, query: { limit: 100, ...query, starting_after: after } });
      yield page.data;
      const last = page.data.at(-1);
      after = last && (id ? last[id] : (last.uuid ?? last.id));
      more = page.has_more && after !== undefined;
    }
  },

  /**
   * All rows of a list that is short, or is needed as a whole.
   * @param {string} path
   * @param {ReadOptions & { id?: string }} [options]
   */
  async all(path, options) {
    const rows = [];
    for await (const page of api.pages(path, options)) rows.push(...page);
    return rows;
  },
};

/**
 * Asks until an answer is there, or `signal` says to stop. That the first attempt is still under way is none, for about
 * a minute.
 * @param {string} method
 * @param {string} url
 * @param {Asked} init
 */
async function request(method, url, init) {
  let waits = 0;
  try {
    for (let pause = FIRST_PAUSE; ; pause = longer(pause)) {
      try {
        return await answered(method, url, init);
      } catch (fault) {
        if (!isUnderWay(fault) || waits === MOST_WAITS) throw fault;
      }
      if (waits === 0) waiting.value += 1;
      waits += 1;
      await wait(pause, init.signal ?? undefined);
    }
  } finally {
    if (waits > 0) waiting.value -= 1;
  }
}

/**
 * Asks until something answers or `signal` says to stop.
 * @param {string} method
 * @param {string} url
 * @param {Asked} init
 */
async function answered(method, url, init) {
  for (let pause = FIRST_PAUSE; ; pause = longer(pause)) {
    const answer = await attempt(method, url, init);
    if (answer) return answer;
    connection.value = "lost";
    await wait(pause, init.signal ?? undefined);
  }
}

/** @param {number} pause in milliseconds, as the next one is */
const longer = (pause) => Math.min(2 * pause, LONGEST_PAUSE);

/**
 * Asks once. Raises `NoAnswer` where none came.
 * @param {string} method
 * @param {string} url
 * @param {Asked} init
 */
async function requestOnce(method, url, init) {
  const answer = await attempt(method, url, init);
  if (answer) return answer;
  connection.value = "lost";
  // Until something answers again.
  request("GET", address("/session"), {}).catch(() => {});
  throw new NoAnswer();
}

/**
 * The parsed answer; null if there was none, or only that the service is away.
 * @param {string} method
 * @param {string} url
 * @param {Asked} init
 */
async function attempt(method, url, init) {
  let response, text;
  try {
    response = await fetch(url, { ...init, method, credentials: "same-origin" });
    text = await response.text();
  } catch (fault) {
    if (init.signal?.aborted) throw fault;
    return null;
  }
  const answer = parsed(init.exact ? withTexts(text) : text);
  // A change that the service itself puts off is for the person to repeat, who sees why: its key stays the same.
  if (AWAY.includes(response.status) && (method === "GET" || !answer?.error)) return null;
  connection.value = "ok";
  if (response.ok) return answer ?? {};
  if (response.status === 401) refusals.value += 1;
  throw new ApiError(response.status, answer, response.headers.get("X-Request-Id") ?? "");
}

/** @param {string} text @returns {any} */
function parsed(text) {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} [stop] ends it with its reason
 * @returns {Promise<void>}
 */
export function wait(milliseconds, stop) {
  return new Promise((done, failed) => {
    if (stop?.aborted) return failed(stop.reason);
    const timer = setTimeout(ended, milliseconds);
    function ended() {
      stop?.removeEventListener("abort", stopped);
      done();
    }
    function stopped() {
      clearTimeout(timer);
      failed(stop?.reason);
    }
    stop?.addEventListener("abort", stopped, { once: true });
  });
}
