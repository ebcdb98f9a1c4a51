import { api } from "../../api.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { counted } from "../../format.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { query, setQuery, to } from "../../router.js";
import { may, session } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["KeyView"]} Key */

export default function Keys() {
  const { team = "" } = query();
  const list = useList("/api_keys", { query: { team_id: team }, every: 30_000 });
  const managed = (session.value?.teams ?? []).filter((one) => may("admin", one.id));
  const members = useResource(
    async (signal) => (team ? api.all("/teams/{id}/members", { params: { id: team }, id: "user_id", signal }) : []),
    [team],
  );
  const names = new Map((members.data ?? []).map((/** @type {any} */ one) => [one.user_id, one.name]));
  /** @type {import("../../components/table.js").Column<Key>[]} */
  const columns = [
    { label: "Name", class: "main", cell: (key) => html`<a href=${to(`/keys/${key.id}`)}>${key.name}</a> <div class="second narrow">${key.last_used_at ? html`used <${Time} value=${key.last_used_at} relative />` : "not used yet"}</div>` },
    ...(team ? [{ label: "Whose", cell: (/** @type {Key} */ key) => names.get(key.user_id) ?? `user ${key.user_id}` }] : []),
    { label: "Status", cell: (key) => html`<${Status} value=${key.status} />` },
    { label: "Key", class: "nowrap", wide: true, cell: (key) => html`<code>${key.preview}</code>` },
    { label: "May", class: "breaks", wide: true, cell: (key) => (key.permissions.length > 2 ? counted(key.permissions.length, "scope") : key.permissions.join(", ")) },
    { label: "Expires", wide: true, cell: (key) => html`<${Time} value=${key.expires_at} relative />` },
    { label: "Last used", wide: true, cell: (key) => html`<${Time} value=${key.last_used_at} relative />` },
  ];
  const make = html`<a class="button primary" href=${to("/keys/new")}>New key</a>`;
  return html`<${Page} title="API keys" actions=${make}>
    <p>A key lets a program call the API as you, with no more rights than it is given here.</p>
    ${managed.length > 0 &&
    html`<div class="filters">
      <${Field}
        label="Whose"
        value=${team}
        onValue=${(/** @type {string} */ value) => setQuery({ team: value })}
        options=${[{ value: "", label: "Mine" }, ...managed.map((one) => ({ value: String(one.id), label: `All for ${one.name}` }))]}
      />
    </div>`}
    <${Listing}
      list=${list}
      label="API keys"
      columns=${columns}
      empty=${{ title: "No keys yet", children: html`<p>Make one for each program, with what it needs alone.</p>` }}
    />
  <//>`;
}
