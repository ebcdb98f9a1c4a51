import { Action, ActionForm } from "../../components/action.js";
import { Field } from "../../components/field.js";
import { announce } from "../../announce.js";
import { html, useState } from "../../html.js";
import { navigate } from "../../router.js";
import { may, rolesFrom } from "../../session.js";
import { EndpointPage } from "./frame.js";
import { Events, SigningSecret } from "./shared.js";

/** @param {import("../../router.js").PageProps} props */
export default function Settings({ params: { id } }) {
  return html`<${EndpointPage} id=${id}>
    ${(/** @type {any} */ endpoint, /** @type {() => void} */ reload) => html`<${Form} endpoint=${endpoint} reload=${reload} />`}
  <//>`;
}

/** @param {{ endpoint: any, reload: () => void }} props */
function Form({ endpoint, reload }) {
  const [before, setBefore] = useState(endpoint);
  const [url, setUrl] = useState(endpoint.url);
  const [chosen, setChosen] = useState(/** @type {string[]} */ (endpoint.events));
  const [saved, setSaved] = useState(false);
  const params = { id: endpoint.id };
  // What others have changed since stays.
  const body = {
    ...(url !== before.url && { url }),
    ...(chosen.join() !== before.events.join() && { events: chosen }),
  };
  if (endpoint.status !== "active") return html`<p>This endpoint was deleted: nothing is sent to it any more.</p>`;
  if (!may("member", endpoint.team_id)) return html`<p>Only ${rolesFrom("member")} of its team change an endpoint.</p>`;
  return html`
    <${ActionForm}
      call=${{ method: "PATCH", path: "/webhook_endpoints/{id}", params, body }}
      submit="Save"
      ready=${Object.keys(body).length > 0}
      onDone=${(/** @type {any} */ { data }) => {
        setBefore(data);
        // Unless more was typed meanwhile.
        setUrl((/** @type {string} */ now) => (now === url ? data.url : now));
        setChosen((now) => (now === chosen ? data.events : now));
        setSaved(true);
        announce("Saved");
        reload();
      }}
    >
      ${(/** @type {Record<string, string>} */ errors) => html`
        <${Field} label="URL" type="url" value=${url} onValue=${setUrl} error=${errors.url} autocomplete="off" required />
        <${Events} chosen=${chosen} onChosen=${setChosen} error=${errors.events} />
        ${saved && html`<p class="quiet">Saved.</p>`}
      `}
    <//>
    <h2>Signing secret</h2>
    <p>A new secret signs beside the old one for a day, so that a receiver can change over.</p>
    <${Action}
      label="Rotate the secret"
      title="Rotate the signing secret"
      confirm="Rotate"
      call=${{ method: "POST", path: "/webhook_endpoints/{id}/secret_rotations", params }}
      result=${(/** @type {any} */ answer) => html`<${SigningSecret} secret=${answer.secret} />`}
    >
      <p>The new secret is shown once. The one before goes on signing for 24 hours.</p>
    <//>
    <h2>Delete</h2>
    <p>Nothing more is sent, and what waits to be sent fails at once.</p>
    <${Action}
      label="Delete the endpoint"
      title="Delete this endpoint"
      confirm="Delete"
      danger
      typed=${String(endpoint.id)}
      call=${{ method: "DELETE", path: "/webhook_endpoints/{id}", params }}
      onDone=${() => navigate("/webhooks", { replace: true })}
    >
      <p class="value">${endpoint.url}</p>
    <//>
  `;
}
