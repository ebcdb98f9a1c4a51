import { html, useEffect, useState } from "../html.js";
import { Copy } from "./copy.js";
import { ErrorNote } from "./error-note.js";

/**
 * Something secret: `load` fetches it when a person asks to see it, and it is in the page only while it is shown. It
 * goes when the page is left or hidden.
 * @param {{ label: string, load: () => Promise<string> | string, shown?: boolean }} props `shown`: at once, for what is
 *   given only now.
 */
export function Secret({ label, load, shown = false }) {
  // What is known already is there from the first picture on.
  const [text, setText] = useState(() => {
    const known = shown ? load() : null;
    return typeof known === "string" ? known : null;
  });
  const [error, setError] = useState(/** @type {any} */ (null));
  const show = async () => {
    try {
      setText(await load());
      setError(null);
    } catch (fault) {
      setError(fault);
    }
  };
  useEffect(() => {
    if (shown && text === null) show();
    const hidden = () => document.hidden && !shown && setText(null);
    document.addEventListener("visibilitychange", hidden);
    return () => document.removeEventListener("visibilitychange", hidden);
  }, []);
  return html`
    <span class="secret">
      <code>${text ?? "••••••••••••"}</code>${" "}
      <button type="button" class="small" aria-expanded=${text !== null} onClick=${() => (text === null ? show() : setText(null))}>
        ${text === null ? "Show" : "Hide"}<span class="visually-hidden"> ${label}</span>
      </button>${" "}
      ${text !== null && html`<${Copy} text=${text} what=${label} />`}
    </span>
    <${ErrorNote} error=${error} />
  `;
}
