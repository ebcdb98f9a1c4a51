import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Time } from "../../components/time.js";
import { number } from "../../format.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";

/** @typedef {import("../../api.js").Schemas["SealView"]} Seal */

/** @type {import("../../components/table.js").Column<Seal>[]} */
const columns = [
  { label: "Seal", class: "number", cell: (seal) => seal.id },
  { label: "Made", cell: (seal) => html`<${Time} value=${seal.sealed_at} relative />` },
  { label: "Events", class: "number", wide: true, cell: (seal) => number(seal.events) },
  { label: "Hash", class: "main", cell: (seal) => html`<code title=${seal.hash}>${seal.hash.slice(0, 16)}…</code>` },
  { label: "Follows", wide: true, cell: (seal) => html`<code>${seal.previous.slice(0, 16)}…</code>` },
];

export default function Seals() {
  const list = useList("/operator/audit_seals", { every: 10_000 });
  return html`<${Page} title="Seals of the audit log">
    <p>Each is over the events since the one before, and has its hash. <code>headwater audit verify</code> computes all of them anew, and compares the last with those that are kept with the backups.</p>
    <${Listing} list=${list} label="Seals" columns=${columns} empty=${{ title: "No seals yet", children: html`<p>Workers make one a few seconds after an event.</p>` }} />
  <//>`;
}
