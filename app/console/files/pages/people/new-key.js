import { ActionForm } from "../../components/action.js";
import { Page } from "../../components/page.js";
import { html, useState } from "../../html.js";
import { navigate } from "../../router.js";
import { KeyFields, useKeyForm } from "./key-form.js";
import { Once } from "./once.js";

export default function NewKey() {
  const form = useKeyForm();
  const [made, setMade] = useState(/** @type {any} */ (null));
  const saved = () => {
    const { id } = made.data;
    setMade(null);
    navigate(`/keys/${id}`, { replace: true });
  };
  return html`<${Page} title="New API key" crumbs=${[{ path: "/keys", label: "API keys" }]}>
    ${made
      ? html`<${Once} title=${`The key ${made.data.name}`} label="the API key" text=${made.api_key} onSaved=${saved} />`
      : html`<${ActionForm} call=${{ method: "POST", path: "/api_keys", body: form.body }} submit="Make the key" ready=${form.ready} onDone=${setMade}>
          ${(/** @type {Record<string, string>} */ errors) => html`<${KeyFields} form=${form} errors=${errors} />`}
        <//>`}
  <//>`;
}
