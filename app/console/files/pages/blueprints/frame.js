// What the pages of one blueprint have in common.
import { api } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Tabs } from "../../components/tabs.js";
import { html } from "../../html.js";
import { useResource } from "../../live.js";

/**
 * The blueprint's heading and tabs, and `children`: a function that gets it, once it is there.
 * @param {{ uuid: string, actions?: (blueprint: any) => any, children: (blueprint: any) => any }} props
 */
export function BlueprintPage({ uuid, actions, children }) {
  const { data, error, reload } = useResource((signal) => api.get("/blueprints/{uuid}", { params: { uuid }, signal, exact: true }), [uuid]);
  const blueprint = data?.data;
  const path = `/blueprints/${uuid}`;
  return html`<${Page}
    title=${blueprint?.name ?? "Blueprint"}
    crumbs=${[{ path: "/blueprints", label: "Blueprints" }]}
    status=${blueprint?.is_system_blueprint && html`<span class="label">everyone's</span>`}
    actions=${blueprint && actions?.(blueprint)}
  >
    <${Tabs}
      label="Parts of the blueprint"
      tabs=${[
        { path, label: "SQL" },
        { path: `${path}/run`, label: "Try and apply" },
        { path: `${path}/versions`, label: "Versions" },
        { path: `${path}/applications`, label: "Applications" },
      ]}
    />
    <${ErrorNote} error=${error} retry=${reload} />
    ${!blueprint && !error && html`<p class="quiet" aria-busy="true"><span class="spinner"></span> Loading…</p>`}
    ${blueprint && children(blueprint)}
  <//>`;
}
