import { announce } from "../announce.js";
import { html, useState } from "../html.js";

/**
 * A button that copies `text`. `what` names it for who doesn't see the button's place.
 * @param {{ text: string | (() => string), what?: string }} props
 */
export function Copy({ text, what = "" }) {
  const [state, setState] = useState("Copy");
  const copy = async () => {
    const done = await write(typeof text === "function" ? text() : text);
    setState(done ? "Copied" : "Not copied");
    announce(done ? `Copied ${what}` : "This browser didn't allow copying.");
    setTimeout(() => setState("Copy"), 2000);
  };
  return html`<button type="button" class="small" onClick=${copy}>
    ${state}${what && html`<span class="visually-hidden"> ${what}</span>`}
  </button>`;
}

/** @param {string} text */
async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return writeSelected(text);
  }
}

/** For pages that are not over TLS, which have no clipboard. @param {string} text */
function writeSelected(text) {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "visually-hidden";
  (document.querySelector("dialog[open]") ?? document.body).append(field);
  const before = document.activeElement;
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return done;
}
