// Operations, newest first, with filters: of one database, or of all that the person sees.
import { Field } from "../components/field.js";
import { Listing } from "../components/listing.js";
import { Status } from "../components/status.js";
import { Time } from "../components/time.js";
import { seconds, words } from "../format.js";
import { html } from "../html.js";
import { useList } from "../lists.js";
import { query, setQuery, to } from "../router.js";

/** @typedef {import("../api.js").Schemas["OperationView"]} Operation */

const TYPES = ["create", "delete", "undelete", "backup", "restore", "clone", "rotate", "limits", "pause", "resume", "apply_blueprint"];
const STATUSES = ["pending", "running", "waiting", "succeeded", "failed", "cancelled"];
const choices = (/** @type {string[]} */ all) => [{ value: "", label: "All" }, ...all.map((value) => ({ value, label: words(value) }))];

/** @param {{ label: string, database?: string }} props */
export function OperationTable({ label, database }) {
  const { type = "", status = "" } = query();
  const list = useList("/operations", { query: { database_uuid: database, type, status }, every: 3000 });
  return html`
    <div class="filters">
      <${Field} label="Type" value=${type} onValue=${(/** @type {string} */ value) => setQuery({ type: value })} options=${choices(TYPES)} />
      <${Field} label="Status" value=${status} onValue=${(/** @type {string} */ value) => setQuery({ status: value })} options=${choices(STATUSES)} />
    </div>
    <${Listing}
      list=${list}
      label=${label}
      empty=${{ title: "No operations", children: html`<p>Every change that takes time is one, with its steps: none is like this.</p>` }}
      columns=${[
        { label: "Operation", class: "nowrap", cell: (/** @type {Operation} */ one) => html`<a href=${to(`/operations/${one.uuid}`)}>${words(one.type)}</a> <div class="second narrow"><${Time} value=${one.created_at} relative /></div>` },
        { label: "Status", cell: (/** @type {Operation} */ one) => html`<${Status} value=${one.status} />` },
        { label: "Why", class: "main", wide: true, cell: (/** @type {Operation} */ one) => one.reason?.message ?? "" },
        ...(database ? [] : [{ label: "Database", class: "breaks", cell: (/** @type {Operation} */ one) => html`<a href=${to(`/databases/${one.database_uuid}`)}>${one.database_name}</a>` }]),
        { label: "Took", class: "number nowrap", wide: true, cell: took },
        { label: "Begun", wide: true, class: "nowrap", cell: (/** @type {Operation} */ one) => html`<${Time} value=${one.created_at} relative />` },
      ]}
    />
  `;
}

/** @param {Operation} operation */
function took({ started_at, finished_at }) {
  if (!started_at || !finished_at) return "";
  return seconds((Date.parse(finished_at) - Date.parse(started_at)) / 1000);
}
