// What a screen reader is told without moving there (ARIA live regions, WCAG 2.2, 4.1.3).
import { html, signal } from "./html.js";

const polite = signal("");
const assertive = signal("");

/**
 * Says it once. `urgent` interrupts what is being said.
 * @param {string} text
 * @param {{ urgent?: boolean }} [options]
 */
export function announce(text, { urgent = false } = {}) {
  const region = urgent ? assertive : polite;
  // The same text twice in a row is not said again, unless it was taken away between.
  region.value = "";
  setTimeout(() => (region.value = text), 50);
}

export function LiveRegions() {
  return html`
    <div class="visually-hidden" aria-live="polite" role="status">${polite.value}</div>
    <div class="visually-hidden" aria-live="assertive" role="alert">${assertive.value}</div>
  `;
}
