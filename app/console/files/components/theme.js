import { html, useState } from "../html.js";

const KEY = "headwater.theme";
const LABELS = { "": "System", light: "Light", dark: "Dark" };

/** A switch between the system's theme, light and dark. The choice stays in this browser. */
export function Theme() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "");
  const choose = (/** @type {string} */ chosen) => {
    setTheme(chosen);
    if (chosen) document.documentElement.dataset.theme = chosen;
    else delete document.documentElement.dataset.theme;
    try {
      if (chosen) localStorage.setItem(KEY, chosen);
      else localStorage.removeItem(KEY);
    } catch {
      // Without storage the choice holds for this page.
    }
  };
  return html`
    <label class="theme">
      <span class="visually-hidden">Theme</span>
      <select value=${theme} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
        ${Object.entries(LABELS).map(([value, label]) => html`<option key=${value} value=${value}>${label}</option>`)}
      </select>
    </label>
  `;
}
