// Addresses below /console, and what they show. Links are plain `<a href>`; a click on one stays on the page.
import { announce } from "./announce.js";
import { html, signal, useEffect, useState } from "./html.js";
import { routes } from "./pages/index.js";

/** @typedef {{ params: Record<string, string>, query: Record<string, string> }} PageProps */
/**
 * @typedef {{
 *   path: string,
 *   title: string,
 *   load: () => Promise<{ default: (props: any) => any }>,
 *   open?: boolean,
 * }} Route `open`: shown to who isn't signed in.
 */

export const BASE = "/console";

/** @param {Location} from */
const read = (from) => ({ path: from.pathname.slice(BASE.length).replace(/\/+$/, "") || "/", search: from.search });

/** Where the reader is: the path below /console. */
export const place = signal(read(location));

/** Counts the navigations, so that each moves the focus once. */
const moves = signal(0);

/** The address of a path below /console, for `href`. @param {string} path */
export const to = (path) => BASE + path;

/**
 * Goes to a path below /console.
 * @param {string} path
 * @param {{ replace?: boolean }} [options] `replace`: without a new entry in the history
 */
export function navigate(path, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", to(path));
  arrive();
}

/** @returns {Record<string, string>} */
export const query = () => Object.fromEntries(new URLSearchParams(place.value.search));

/**
 * Changes what the address says after `?`, without a new entry in the history and without moving the focus. An empty
 * value takes a name out.
 * @param {Record<string, string | null | undefined>} changes
 */
export function setQuery(changes) {
  const search = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) search.set(name, value);
    else search.delete(name);
  }
  const text = search.toString();
  history.replaceState(null, "", location.pathname + (text && `?${text}`));
  place.value = read(location);
}

function arrive() {
  const before = place.value.path;
  place.value = read(location);
  if (before !== place.value.path) {
    moves.value += 1;
    scrollTo(0, 0);
  }
}

/** Takes over clicks on links to other pages of the console. */
export function listen() {
  addEventListener("popstate", arrive);
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target || link.download) return;
    if (link.origin !== location.origin || !(link.pathname + "/").startsWith(BASE + "/")) return;
    // A link within the page, such as that over the navigation, is the browser's.
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    navigate(link.pathname.slice(BASE.length) + link.search);
  });
}

/**
 * The route of a path, and its parameters.
 * @param {string} path
 * @returns {{ route: Route, params: Record<string, string> } | null}
 */
export function match(path) {
  const parts = path.split("/");
  for (const route of routes) {
    const wanted = route.path.split("/");
    if (wanted.length !== parts.length) continue;
    /** @type {Record<string, string>} */
    const params = {};
    const fits = wanted.every((part, at) => {
      if (!part.startsWith(":")) return part === parts[at];
      params[part.slice(1)] = decoded(parts[at]);
      return parts[at] !== "";
    });
    if (fits) return { route, params };
  }
  return null;
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** @type {Map<Route, any>} pages that have been loaded */
const loaded = new Map();

/** The page of the current address. While its module is fetched, the one before stays. */
export function CurrentPage() {
  const found = match(place.value.path);
  const [shown, show] = useState(/** @type {any} */ (null));
  const [failed, setFailed] = useState(false);
  const route = found?.route;

  useEffect(() => {
    if (!route || loaded.has(route)) return;
    setFailed(false);
    route.load().then(
      (module) => {
        loaded.set(route, module.default);
        show(route);
      },
      () => loadAgain() || setFailed(true),
    );
  }, [route]);

  useEffect(() => {
    if (route) document.title = `${route.title} · Headwater`;
  }, [place.value.path]);

  if (!found || !route) return html`<${NotFound} />`;
  if (failed) return html`<${NotLoaded} />`;
  const Page = loaded.get(route);
  if (!Page) return html`<${Loading} title=${route.title} />`;
  return html`<${Page} key=${place.value.path} params=${found.params} query=${query()} />`;
}

/** A page before there is more of it than its title. @param {{ title: string }} props */
export function Loading({ title }) {
  return html`
    <div class="heading"><h1>${title}</h1></div>
    <div class="page-loading" aria-busy="true"><span class="spinner"></span> Loading…</div>
  `;
}

/** After an update the modules of before are gone: the page is loaded again, once. */
function loadAgain() {
  if (history.state?.again) return false;
  history.replaceState({ again: true }, "");
  location.reload();
  return true;
}

function NotFound() {
  useTitle("Not found");
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>There is no such page</h1>
    <p><a href=${to("/")}>All databases</a></p>
  `;
}

function NotLoaded() {
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>This page could not be loaded</h1>
    <p>The connection may be lost. <button type="button" onClick=${() => location.reload()}>Load again</button></p>
  `;
}

/** A hook: the document's title. @param {string | undefined} title */
export function useTitle(title) {
  useEffect(() => {
    if (title) document.title = `${title} · Headwater`;
  }, [title]);
}

let arrivedAt = 0;

/** A hook: a reference for the page's heading, which gets the focus after a navigation, and is announced by it. */
export function useArrival() {
  const [element, setElement] = useState(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!element || arrivedAt === moves.value) return;
    arrivedAt = moves.value;
    element.focus({ preventScroll: true });
    announce(document.title);
  }, [element]);
  return setElement;
}
