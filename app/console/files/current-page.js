// What an address shows: its route, and the route's page.
import { html, useEffect, useErrorBoundary, useState } from "./html.js";
import { routes } from "./pages/index.js";
import { place, query, to, useArrival, useTitle } from "./router.js";

/**
 * @typedef {{
 *   path: string,
 *   title: string,
 *   load: () => Promise<{ default: (props: any) => any }>,
 *   open?: boolean,
 * }} Route `open`: shown to who isn't signed in.
 */

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
  return html`<${Whole} key=${place.value.path}><${Page} params=${found.params} query=${query()} /><//>`;
}

/** A page, or what is said in its place when it can't be drawn: the frame around it stays. @param {{ children?: any }} props */
function Whole({ children }) {
  const [fault] = useErrorBoundary((error) => reportError(error));
  return fault ? html`<${NotDrawn} />` : children;
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

function NotDrawn() {
  useTitle("Not shown");
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>This page could not be shown</h1>
    <p>Something in it was not expected; the browser's console says what.</p>
    <div class="buttons">
      <button type="button" onClick=${() => location.reload()}>Load again</button>
      <a class="button" href=${to("/")}>All databases</a>
    </div>
  `;
}

function NotLoaded() {
  return html`
    <h1 tabindex="-1" ref=${useArrival()}>This page could not be loaded</h1>
    <p>The connection may be lost. <button type="button" onClick=${() => location.reload()}>Load again</button></p>
  `;
}
