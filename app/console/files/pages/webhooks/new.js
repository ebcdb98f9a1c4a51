import { ActionForm } from "../../components/action.js";
import { Field } from "../../components/field.js";
import { OnlyFor } from "../../components/only-for.js";
import { Page } from "../../components/page.js";
import { html, useState } from "../../html.js";
import { to } from "../../router.js";
import { may, session } from "../../session.js";
import { Events, SigningSecret } from "./shared.js";
import { Snippets } from "./snippets.js";

const CRUMBS = [{ path: "/webhooks", label: "Webhooks" }];

export default function NewEndpoint() {
  const teams = (session.value?.teams ?? []).filter((team) => may("member", team.id));
  const [url, setUrl] = useState("");
  const [team, setTeam] = useState(String(teams[0]?.id ?? ""));
  const [chosen, setChosen] = useState(/** @type {string[]} */ ([]));
  const [made, setMade] = useState(/** @type {any} */ (null));
  const call = { method: "POST", path: "/webhook_endpoints", body: { url, events: chosen, team_id: Number(team) } };
  if (teams.length === 0) {
    return html`<${Page} title="New endpoint" crumbs=${CRUMBS}><${OnlyFor} what="make endpoints" /><//>`;
  }
  if (made) {
    return html`<${Page} title="Endpoint made" crumbs=${CRUMBS}>
      <${SigningSecret} secret=${made.secret} />
      <p><a class="button primary" href=${to(`/webhooks/${made.data.id}`)}>To the endpoint</a></p>
      <${Snippets} />
    <//>`;
  }
  return html`<${Page} title="New endpoint" crumbs=${CRUMBS}>
    <${ActionForm} call=${call} submit="Create" ready=${url !== "" && team !== ""} onDone=${setMade}>
      ${(/** @type {Record<string, string>} */ errors) => html`
        <${Field}
          label="URL"
          type="url"
          value=${url}
          onValue=${setUrl}
          error=${errors.url}
          hint="HTTPS, on a public address."
          autocomplete="off"
          required
        />
        ${teams.length > 1 &&
        html`<${Field} label="Team" value=${team} onValue=${setTeam} options=${teams.map((one) => ({ value: String(one.id), label: one.name }))} error=${errors.team_id} />`}
        <${Events} chosen=${chosen} onChosen=${setChosen} error=${errors.events} />
      `}
    <//>
  <//>`;
}
