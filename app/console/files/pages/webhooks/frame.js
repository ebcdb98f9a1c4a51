// What the pages of one endpoint have in common.
import { api } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Tabs } from "../../components/tabs.js";
import { html } from "../../html.js";
import { useResource } from "../../live.js";

/**
 * @param {{ id: string, children: (endpoint: any, reload: () => void) => any }} props
 */
export function EndpointPage({ id, children }) {
  const { data, error, reload } = useResource((signal) => api.get("/webhook_endpoints/{id}", { params: { id }, signal }), [id], { every: 5000 });
  const endpoint = data?.data;
  const path = `/webhooks/${id}`;
  return html`<${Page}
    title=${endpoint?.url ?? "Endpoint"}
    crumbs=${[{ path: "/webhooks", label: "Webhooks" }]}
    status=${endpoint && html`<${Status} value=${endpoint.status} />`}
  >
    <${Tabs}
      label="Parts of the endpoint"
      tabs=${[
        { path, label: "Deliveries" },
        { path: `${path}/settings`, label: "Settings" },
        { path: `${path}/verifying`, label: "Verifying" },
      ]}
    />
    <${ErrorNote} error=${error} retry=${reload} />
    ${!endpoint && !error && html`<p class="quiet" aria-busy="true"><span class="spinner"></span> Loading…</p>`}
    ${endpoint && children(endpoint, reload)}
  <//>`;
}
