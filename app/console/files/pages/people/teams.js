import { Action } from "../../components/action.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Time } from "../../components/time.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { navigate, to } from "../../router.js";
import { readSession } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["TeamView"]} Team */

/** @type {import("../../components/table.js").Column<Team>[]} */
const columns = [
  { label: "Name", class: "main", cell: (team) => html`<a href=${to(`/teams/${team.id}`)}>${team.name}</a>` },
  { label: "Your role", cell: (team) => team.role },
  { label: "Tier", cell: (team) => team.tier },
  { label: "Made", wide: true, cell: (team) => html`<${Time} value=${team.created_at} relative />` },
];

export default function Teams() {
  const list = useList("/teams", { every: 30_000 });
  const [name, setName] = useState("");
  const made = async (/** @type {any} */ answer) => {
    await readSession();
    navigate(`/teams/${answer.data.id}`);
  };
  const make = html`<${Action} primary label="New team" confirm="Make the team" call=${{ method: "POST", path: "/teams", body: { name } }} ready=${name.trim() !== ""} onOpen=${() => setName("")} onDone=${made}>
    <p>You own it, and invite others.</p>
    <${Field} label="Name" value=${name} onValue=${setName} maxlength="255" autocomplete="off" />
  <//>`;
  return html`<${Page} title="Teams" actions=${make}>
    <${Listing}
      list=${list}
      label="Teams"
      columns=${columns}
      empty=${{ title: "You are in no team", children: html`<p>A team owns databases. Make one, or follow the link of an invitation.</p>` }}
    />
  <//>`;
}
