// Starts the console: the frame around all pages.
import { LiveRegions, announce } from "./announce.js";
import { connection, waiting } from "./api.js";
import { watchFocus } from "./focus.js";
import { CurrentPage, Loading, match } from "./current-page.js";
import { computed, effect, html, render, useEffect, useState } from "./html.js";
import { groups } from "./navigation.js";
import { listen, place, to } from "./router.js";
import { session, sessionError, startSession } from "./session.js";
import { Theme } from "./components/theme.js";
import { SessionUnread, SignedOut } from "./components/signed-out.js";

function Console() {
  const route = match(place.value.path)?.route;
  return html`
    <a class="skip-link" href="#main">Skip to the page</a>
    <${Header} />
    <${Connection} />
    <div class="body">
      ${session.value !== null && html`<${Navigation} />`}
      <main id="main" tabindex="-1"><${Page} route=${route} /></main>
    </div>
    <${LiveRegions} />
  `;
}

/** @param {{ route?: import("./current-page.js").Route }} props */
function Page({ route }) {
  if (route?.open || session.value) return html`<${CurrentPage} />`;
  if (session.value === null) return html`<${SignedOut} />`;
  const title = route?.title ?? "Headwater";
  return sessionError.value ? html`<${SessionUnread} title=${title} />` : html`<${Loading} title=${title} />`;
}

function Header() {
  const person = session.value?.user;
  return html`
    <header class="top">
      <a class="brand" href=${to("/")}>Headwater</a>
      <span class="grow"></span>
      <${Theme} />
      ${person && html`<a class="person" href=${to("/account")}>${person.name}</a>`}
    </header>
  `;
}

function Navigation() {
  const [shown, show] = useState(false);
  const path = place.value.path;
  useEffect(() => show(false), [path]);
  const current = path === "/" ? "/databases" : path;
  const seen = groups.filter(
    (group) => group.entries.length > 0 && (!group.operator || session.value?.operator),
  );
  const paths = seen.flatMap((group) => group.entries.map((entry) => entry.path));
  // A page that has an entry of its own is not marked at another one's too.
  const nearest = paths.includes(current) ? current : paths.find((path) => current.startsWith(`${path}/`));
  return html`
    <nav class="navigation" aria-label="Console">
      <button type="button" class="menu" aria-expanded=${shown} aria-controls="menu" onClick=${() => show(!shown)}>
        Menu
      </button>
      <div id="menu" class=${shown ? "shown" : ""}>
        ${seen.map(
          (group) => html`
            <h2 key=${group.label}>${group.label}</h2>
            <ul>
              ${group.entries.map((entry) => {
                const state = current === entry.path ? "page" : nearest === entry.path ? "true" : undefined;
                return html`<li key=${entry.path}>
                  <a href=${to(entry.path)} aria-current=${state}>${entry.label}</a>
                </li>`;
              })}
            </ul>
          `,
        )}
      </div>
    </nav>
  `;
}

const LOST = { text: "Connection lost, retrying", over: "Connected again" };
const WAITING = { text: "The first attempt is still under way, waiting for its answer", over: "The answer is there" };
const trouble = computed(() => (connection.value === "lost" ? LOST : waiting.value > 0 ? WAITING : null));

/** Says that nothing answers, or that an answer is waited for, and that it is tried again. */
function Connection() {
  if (!trouble.value) return null;
  return html`<div class="connection" role="region" aria-label="Connection">
    <span class="spinner"></span> ${trouble.value.text}…
  </div>`;
}

let was = trouble.value;
effect(() => {
  if (trouble.value !== was) announce(`${trouble.value?.text ?? was?.over}.`);
  was = trouble.value;
});

listen();
startSession();
// At once, and not only when it is known who is signed in.
match(place.value.path)?.route.load().catch(() => {});
const root = document.getElementById("console");
if (root) {
  root.textContent = "";
  watchFocus(root);
  render(html`<${Console} />`, root);
  // A browser may keep a page that was left, and show it again as it was: also to who comes after the person, and with
  // what was shown once.
  addEventListener("pagehide", () => render(null, root));
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}
