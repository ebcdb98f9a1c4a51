import { html } from "../html.js";
import { place, to } from "../router.js";

/**
 * Parts of one thing, each with its own address.
 * @param {{ label: string, tabs: { path: string, label: string }[] }} props
 */
export function Tabs({ label, tabs }) {
  return html`
    <nav class="tabs" aria-label=${label}>
      ${tabs.map(
        (tab) => html`<a key=${tab.path} href=${to(tab.path)} aria-current=${place.value.path === tab.path ? "page" : undefined}>
          ${tab.label}
        </a>`,
      )}
    </nav>
  `;
}
