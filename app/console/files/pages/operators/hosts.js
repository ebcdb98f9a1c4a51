import { Action } from "../../components/action.js";
import { Amount } from "../../components/amount.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Table } from "../../components/table.js";
import { Time } from "../../components/time.js";
import { number } from "../../format.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { AddHost } from "./add-host.js";

/** @typedef {import("../../api.js").Schemas["HostView"]} Host */
/** @typedef {import("../../api.js").Schemas["EvacuatedDatabase"]} Evacuated */

/** @param {() => void} reload @returns {import("../../components/table.js").Column<Host>[]} */
const columns = (reload) => [
  { label: "Host", class: "main address", cell: (host) => html`<strong>${host.host}:${host.port}</strong><br /><span class="quiet">${host.flavour} ${host.version}</span><div class="second tight">${host.region}, room for ${number(host.room.databases, 0)}, load ${number(100 * host.load)} %</div>` },
  { label: "State", cell: state },
  { label: "Region", class: "nowrap roomy", wide: true, cell: (host) => host.region },
  { label: "Databases", wide: true, cell: (host) => html`<${Amount} value=${host.databases} of=${host.capacity} label=${`Databases on ${host.host}`} />` },
  { label: "Connections", wide: true, cell: (host) => html`<${Amount} value=${host.connections} of=${host.connection_room} label=${`Connections of ${host.host}`} />` },
  { label: "Room", class: "number roomy", wide: true, cell: (host) => number(host.room.databases, 0) },
  { label: "Load", class: "number roomy", wide: true, cell: (host) => `${number(100 * host.load)} %` },
  { label: "Actions", cell: (host) => html`<div class="buttons"><${Deeds} host=${host} reload=${reload} /></div>` },
];

/** @param {Host} host */
function state(host) {
  if (host.failure) return html`<${Status} value="failing" tone="bad" /> <span class="quiet">${host.failure}</span>`;
  return html`<${Status} value=${host.draining ? "draining" : "open"} tone=${host.draining ? "warn" : "good"} />`;
}

/** @param {{ host: Host, reload: () => void }} props */
function Deeds({ host, reload }) {
  const [discard, setDiscard] = useState(false);
  const params = { id: host.id };
  const address = `${host.host}:${host.port}`;
  const name = (/** @type {string} */ what) => html`${what}<span class="visually-hidden"> ${address}</span>`;
  // With keys: a dialog closes where somebody else was first, and is never its own opposite.
  return html`
    ${host.draining
      ? html`<${Action} key="undrain" label=${name("Undrain")} title=${`Undrain ${address}`} confirm="Undrain" small call=${{ method: "DELETE", path: "/operator/hosts/{id}/drains", params }} onDone=${reload}>
          <p>New databases are placed on it again.</p>
        <//>`
      : html`<${Action} key="drain" label=${name("Drain")} title=${`Drain ${address}`} confirm="Drain" small call=${{ method: "POST", path: "/operator/hosts/{id}/drains", params, body: {} }} onDone=${reload}>
          <p>No new databases are placed on it; those that are there stay.</p>
        <//>`}
    <${Action}
      label=${name("Evacuate")}
      title=${`Evacuate ${address}`}
      confirm="Evacuate"
      small
      danger
      typed=${address}
      call=${{ method: "POST", path: "/operator/hosts/{id}/evacuations", params, body: { discard } }}
      onOpen=${() => setDiscard(false)}
      onDone=${reload}
      result=${evacuated}
    >
      <p>
        For a host that is lost. Each of its databases is made again on another host of its region, from its newest
        backup, with its name, user and password. What was written after that backup is not there. Do it again to see
        how far it is.
      </p>
      <${Field} label="Give up what lies there of databases that were moved already, or are due to be destroyed" type="checkbox" value=${discard} onValue=${setDiscard} />
    <//>
    ${host.draining &&
    html`<${Action} label=${name("Remove")} title=${`Remove ${address}`} confirm="Remove" small danger typed=${address} call=${{ method: "DELETE", path: "/operator/hosts/{id}", params }} onDone=${reload}>
      <p>For a host that has no databases any more. Its administrator's credentials are forgotten.</p>
    <//>`}
  `;
}

/** @param {{ data: { databases: Evacuated[] } }} answer */
function evacuated({ data: { databases } }) {
  if (databases.length === 0) return html`<p>No database was on it.</p>`;
  return html`<${Table}
    label="What becomes of its databases"
    rows=${databases}
    id=${(/** @type {Evacuated} */ one) => one.database_uuid}
    columns=${[
      { label: "Database", class: "main", cell: (/** @type {Evacuated} */ one) => html`${one.name}<br /><span class="quiet">${one.team ?? ""}</span>` },
      { label: "What becomes of it", cell: (/** @type {Evacuated} */ one) => html`<${Status} value=${one.status} tone=${{ moved: "good", moving: "busy", failed: "bad", no_backup: "bad" }[/** @type {string} */ (one.status)] ?? "warn"} label=${one.status.replace("_", " ")} />` },
      { label: "Host", wide: true, cell: (/** @type {Evacuated} */ one) => one.host },
      { label: "Data of", cell: (/** @type {Evacuated} */ one) => html`<${Time} value=${one.data_of} />` },
    ]}
  />`;
}

export default function Hosts() {
  const list = useList("/operator/hosts", { every: 10_000 });
  return html`<${Page} title="Hosts" actions=${html`<${AddHost} onDone=${list.reload} />`}>
    <p>The servers that hold databases.</p>
    <${Listing} list=${list} label="Hosts" columns=${columns(list.reload)} empty=${{ title: "No hosts", children: html`<p>Add a server of PostgreSQL, MySQL or MariaDB: databases are placed there.</p>` }} />
  <//>`;
}
