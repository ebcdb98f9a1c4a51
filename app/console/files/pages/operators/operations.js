import { Action } from "../../components/action.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { words } from "../../format.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { query, setQuery } from "../../router.js";
import { forOperators } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["OperatorOperationView"]} Operation */

const TYPES = ["create", "delete", "undelete", "backup", "restore", "clone", "rotate", "limits", "pause", "resume", "apply_blueprint"];
const STATUSES = ["pending", "running", "waiting", "succeeded", "failed", "cancelled"];
const choices = (/** @type {string[]} */ all) => [{ value: "", label: "All" }, ...all.map((value) => ({ value, label: words(value) }))];

export default function Operations() {
  const asked = query();
  const [team, setTeam] = useState(asked.team ?? "");
  const list = useList("/operator/operations", {
    query: { type: asked.type, status: asked.status, team: asked.team, open: asked.open, overdue: asked.overdue },
    every: 5000,
  });
  const set = (/** @type {string} */ name) => (/** @type {any} */ value) => setQuery({ [name]: value === true ? "true" : value || null });
  /** @type {import("../../components/table.js").Column<Operation>[]} */
  const columns = [
    { label: "Operation", class: "nowrap", cell: (one) => html`${words(one.type)}${one.overdue ? html` <span class="label">overdue</span>` : ""} <div class="narrow"><${Status} value=${one.status} /></div>` },
    { label: "Status", wide: true, cell: (one) => html`<${Status} value=${one.status} />` },
    { label: "Of", class: "breaks", cell: (one) => html`<strong title=${one.database_uuid}>${one.database}</strong><br /><span class="quiet">${one.team}</span>` },
    { label: "Why", class: "main", wide: true, cell: (one) => one.reason?.message ?? "" },
    { label: "Begun", wide: true, cell: (one) => html`<${Time} value=${one.created_at} relative />` },
    { label: "Actions", class: "nowrap", cell: (one) => html`<${Actions} one=${one} again=${list.reload} />` },
  ];
  const filter = (/** @type {Event} */ event) => {
    event.preventDefault();
    set("team")(team);
  };
  const pauses = html`<${Pause} label="Pause a database" method="POST" again=${list.reload} /> <${Pause} label="Resume a database" method="DELETE" again=${list.reload} />`;
  return html`<${Page} title="Operations of everyone" actions=${pauses}>
    <form class="filters" onSubmit=${filter}>
      <${Field} label="Type" value=${asked.type ?? ""} onValue=${set("type")} options=${choices(TYPES)} />
      <${Field} label="Status" value=${asked.status ?? ""} onValue=${set("status")} options=${choices(STATUSES)} />
      <${Field} label="Team" value=${team} onValue=${setTeam} placeholder="id or name" />
      <button>Filter</button>
      <${Field} type="checkbox" label="Open" value=${asked.open === "true"} onValue=${set("open")} />
      <${Field} type="checkbox" label="Overdue" value=${asked.overdue === "true"} onValue=${set("overdue")} />
    </form>
    <${Listing} list=${list} label="Operations" columns=${columns} empty=${{ title: "No operations", children: html`<p>None is like this.</p>` }} />
  <//>`;
}

/** @param {{ one: Operation, again: () => void }} props */
function Actions({ one, again }) {
  const at = { method: "POST", params: { uuid: one.uuid } };
  const what = `${words(one.type)} of ${one.database}`;
  return html`
    ${one.status === "waiting" &&
    html`<${Action} small label="Retry" title=${`Retry the ${what}`} call=${{ ...at, path: "/operator/operations/{uuid}/retries" }} onDone=${again}>
      <p>The next attempt is made now.</p>
    <//>${" "}`}
    ${one.operator_cancellable &&
    html`<${Action} small danger label="Cancel" title=${`Cancel the ${what}`} confirm="Cancel the operation" call=${{ ...at, path: "/operator/operations/{uuid}/cancellations" }} onDone=${again}>
      <p>What it has changed so far is undone. It is ${one.team}'s, not yours.</p>
    <//>${" "}`}
    ${/^https?:/.test(one.temporal_url ?? "") && html`<a href=${one.temporal_url} target="_blank" rel="noreferrer">Temporal<span class="visually-hidden"> of the ${what}</span></a>`}
  `;
}

/** @param {{ label: string, method: string, again: () => void }} props */
function Pause({ label, method, again }) {
  const [uuid, setUuid] = useState("");
  return html`<${Action} label=${label} danger=${method === "POST"} confirm=${label} call=${{ method, path: "/operator/databases/{uuid}/pauses", params: { uuid: uuid.trim() } }} ready=${uuid.trim() !== ""} onDone=${again} ...${forOperators()}>
    <p>${method === "POST" ? "Its connections end, and nobody logs in until an operator resumes it." : "Its credentials work again, whatever it was paused for."}</p>
    <${Field} label="Its uuid" value=${uuid} onValue=${setUuid} autocomplete="off" spellcheck=${false} />
  <//>`;
}
