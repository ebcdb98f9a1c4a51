import { Amount } from "../../components/amount.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { counted } from "../../format.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";

/** @typedef {import("../../api.js").Schemas["PoolView"]} Pool */

/** @param {Pool} pool */
function filling(pool) {
  if (pool.coming > 0) return html`<${Status} value="running" label=${`${counted(pool.coming, "database")} on the way`} />`;
  if (pool.size === 0) return html`<${Status} value="off" />`;
  if (pool.missing === 0) return html`<${Status} value="full" tone="good" />`;
  return html`<${Status} value="waiting" label=${pool.open_hosts ? `${pool.missing} missing` : `${pool.missing} missing, no host takes any`} />`;
}

/** @type {import("../../components/table.js").Column<Pool>[]} */
const columns = [
  { label: "Pool", class: "main", cell: (pool) => `${pool.db_type} in ${pool.region}` },
  { label: "Ready", cell: (pool) => html`<${Amount} value=${pool.ready} of=${pool.size || null} aim label=${`Ready: ${pool.db_type} in ${pool.region}`} />` },
  { label: "Filling", cell: filling },
  { label: "Size set by", wide: true, cell: (pool) => pool.size_from },
];

export default function Pools() {
  const list = useList("/operator/pools", { id: (/** @type {Pool} */ pool) => `${pool.region}/${pool.db_type}`, every: 5000 });
  return html`<${Page} title="Pools">
    <p>Databases that are kept ready for creates. <code>headwater pool set</code> sets their sizes.</p>
    <${Listing} list=${list} label="Pools" columns=${columns} empty=${{ title: "No pools", children: html`<p>There is one for each engine of a region that has a host.</p>` }} />
  <//>`;
}
