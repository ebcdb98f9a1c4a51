// Addresses below /console. Links are plain `<a href>`; a click on one stays on the page.
import { announce } from "./announce.js";
import { signal, useEffect, useState } from "./html.js";

/** @typedef {{ params: Record<string, string>, query: Record<string, string> }} PageProps */

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
    event.preventDefault();
    // The link over the navigation leaves the address alone: what is behind the # of some pages is a token.
    if (link.hash && link.pathname === location.pathname) return document.getElementById(link.hash.slice(1))?.focus();
    navigate(link.pathname.slice(BASE.length) + link.search);
  });
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
