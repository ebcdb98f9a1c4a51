import { ActionForm } from "../components/action.js";
import { Field } from "../components/field.js";
import { Page } from "../components/page.js";
import { Steps } from "../components/steps.js";
import { html, useEffect, useState } from "../html.js";
import { useOperation } from "../live.js";
import { navigate } from "../router.js";

export default function NewDatabase() {
  const [name, setName] = useState("");
  const [engine, setEngine] = useState("postgres");
  const [made, setMade] = useState(/** @type {any} */ (null));
  const operation = useOperation(made?.operation?.uuid);
  const crumbs = [{ path: "/databases", label: "Databases" }];
  useEffect(() => {
    if (operation?.status === "succeeded") navigate(`/databases/${made.data.uuid}`, { replace: true });
  }, [operation?.status]);
  if (made) return html`<${Page} title=${made.data.name} crumbs=${crumbs}><${Steps} operation=${operation} /><//>`;
  const call = { method: "POST", path: "/databases", body: { name, db_type: engine } };
  return html`<${Page} title="New database" crumbs=${crumbs}>
    <${ActionForm} call=${call} submit="Create" ready=${name !== ""} onDone=${setMade}>
      ${(/** @type {Record<string, string>} */ errors) => html`
        <${Field} label="Name" value=${name} onValue=${setName} error=${errors.name} autocomplete="off" />
        <${Field} label="Engine" value=${engine} onValue=${setEngine} options=${["postgres", "mysql"]} error=${errors.db_type} />
      `}
    <//>
  <//>`;
}
