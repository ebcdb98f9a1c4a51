import { Secret } from "../../components/secret.js";
import { html, useLayoutEffect, useRef } from "../../html.js";

/**
 * What the API tells this once: shown until the person says that they have it.
 * @param {{ title: string, label: string, text: string, onSaved: () => void, children?: any }} props
 */
export function Once({ title, label, text, onSaved, children }) {
  const panel = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => panel.current?.focus(), []);
  return html`
    <section class="panel once" tabindex="-1" ref=${panel} aria-label=${title}>
      <h2>${title}</h2>
      <p>It is shown this once. Whoever has it can use it: keep it where you keep passwords.</p>
      <p><${Secret} label=${label} load=${() => text} shown /></p>
      ${children}
      <div class="buttons"><button type="button" class="primary" onClick=${onSaved}>I have saved it</button></div>
    </section>
  `;
}
