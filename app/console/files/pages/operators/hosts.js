import { Amount } from "../../components/amount.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { number } from "../../format.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";

/** @typedef {import("../../api.js").Schemas["HostView"]} Host */

/** @type {import("../../components/table.js").Column<Host>[]} */
const columns = [
  { label: "Host", class: "main", cell: (host) => html`<strong>${host.host}:${host.port}</strong><br /><span class="quiet">${host.flavour} ${host.version}</span>` },
  { label: "State", cell: state },
  { label: "Region", class: "nowrap", wide: true, cell: (host) => host.region },
  { label: "Databases", cell: (host) => html`<${Amount} value=${host.databases} of=${host.capacity} label=${`Databases on ${host.host}`} />` },
  { label: "Connections", wide: true, cell: (host) => html`<${Amount} value=${host.connections} of=${host.connection_room} label=${`Connections of ${host.host}`} />` },
  { label: "Room", class: "number", wide: true, cell: (host) => number(host.room.databases, 0) },
  { label: "Load", class: "number", cell: (host) => `${number(100 * host.load)} %` },
];

/** @param {Host} host */
function state(host) {
  if (host.failure) return html`<${Status} value="failing" tone="bad" /> <span class="quiet">${host.failure}</span>`;
  return html`<${Status} value=${host.draining ? "draining" : "open"} tone=${host.draining ? "warn" : "good"} />`;
}

export default function Hosts() {
  const list = useList("/operator/hosts", { every: 10_000 });
  return html`<${Page} title="Hosts">
    <p>The servers that hold databases. <code>headwater hosts</code> adds, drains and evacuates them.</p>
    <${Listing} list=${list} label="Hosts" columns=${columns} empty=${{ title: "No hosts", children: html`<p>Add one with <code>headwater hosts add</code>.</p>` }} />
  <//>`;
}
