import { api } from "../../api.js";
import { Curl } from "../../components/curl.js";
import { Dialog } from "../../components/dialog.js";
import { Empty } from "../../components/empty.js";
import { ErrorNote } from "../../components/error-note.js";
import { Facts } from "../../components/facts.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { counted, typedMoment } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { query, setQuery } from "../../router.js";
import { save } from "../../save.js";
import { may, rolesFrom, session } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["AuditEventView"]} AuditEvent */

const MOST = 50_000;
const TIMES = ["from", "to"];
/** As a field for a date and time has it. @param {string} text */
const isTime = (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text) && !Number.isNaN(Date.parse(text));

export default function Audit() {
  // What is no time in an address is none.
  const asked = Object.fromEntries(Object.entries(query()).filter(([name, text]) => !TIMES.includes(name) || isTime(text)));
  const filters = { actor: asked.actor, action: asked.action, subject: asked.subject, from: typedMoment(asked.from), to: typedMoment(asked.to) };
  const names = usePeople();
  const [event, setEvent] = useState(/** @type {AuditEvent | null} */ (null));
  if (!may("admin")) {
    return html`<${Page} title="Audit log"><${Empty} title="Not for your role"><p>The audit log of a team is for its ${rolesFrom("admin")}.</p><//><//>`;
  }
  /** @param {AuditEvent} one */
  const who = ({ actor }) => (actor.user_id ? (names.get(actor.user_id) ?? `user ${actor.user_id}`) : actor.kind);
  /** @type {import("../../components/table.js").Column<AuditEvent>[]} */
  const columns = [
    { label: "When", wide: true, cell: (one) => html`<${Time} value=${one.at} relative />` },
    { label: "What", class: "main", cell: (one) => html`<button type="button" class="link" onClick=${() => setEvent(one)}>${one.action}</button> <div class="second narrow"><${Time} value=${one.at} relative /></div>` },
    { label: "Who", class: "breaks", wide: true, cell: who },
    { label: "Of", class: "breaks", wide: true, cell: (one) => html`${one.subject.object} <code>${(one.subject.id ?? "").slice(0, 8)}</code>` },
    { label: "Outcome", cell: (one) => html`<${Status} value=${one.outcome} tone=${one.outcome === "refused" ? "bad" : "good"} />` },
  ];
  return html`<${Page} title="Audit log">
    <p>Who did what in your teams, or was refused what. Nobody can change these lines: they are sealed in a chain that the one who runs the service verifies.</p>
    <${Filters} asked=${asked} />
    <${Log} filters=${filters} columns=${columns} />
    <${Export} filters=${filters} />
    ${event && html`<${Details} event=${event} who=${who(event)} onClose=${() => setEvent(null)} />`}
  <//>`;
}

/** @param {{ filters: import("../../api.js").Query, columns: import("../../components/table.js").Column<AuditEvent>[] }} props */
function Log({ filters, columns }) {
  const list = useList("/audit_events", { query: filters });
  return html`<${Listing} list=${list} label="Audit log" columns=${columns} empty=${{ title: "No events", children: html`<p>Nothing was done that is like this.</p>` }} />`;
}

/** A hook: the names of the people in the teams whose log this is, by their ids. @returns {Map<number, string>} */
function usePeople() {
  const teams = (session.value?.teams ?? []).filter((team) => may("admin", team.id)).map((team) => team.id);
  const { data } = useResource(async (signal) => {
    const members = await Promise.all(teams.map((id) => api.all("/teams/{id}/members", { params: { id }, id: "user_id", signal })));
    return members.flat();
  }, [JSON.stringify(teams)]);
  return new Map((data ?? []).map((/** @type {any} */ one) => [one.user_id, one.name]));
}

/** @param {{ asked: Record<string, string> }} props */
function Filters({ asked }) {
  const [fields, setFields] = useState(asked);
  useEffect(() => setFields(asked), [JSON.stringify(asked)]);
  const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {object} */ more = {}) =>
    html`<${Field} label=${label} value=${fields[name] ?? ""} onValue=${(/** @type {string} */ value) => setFields({ ...fields, [name]: value })} ...${more} />`;
  const apply = (/** @type {Event} */ event) => {
    event.preventDefault();
    setQuery(fields);
  };
  const clear = () => setQuery(Object.fromEntries(Object.keys(fields).map((name) => [name, null])));
  return html`
    <form class="filters" onSubmit=${apply}>
      ${field("action", "Action", { placeholder: "database.create" })} ${field("actor", "Actor", { placeholder: "user:3" })}
      ${field("subject", "Subject", { placeholder: "database:UUID" })} ${field("from", "From", { type: "datetime-local" })}
      ${field("to", "To", { type: "datetime-local" })}
      <button>Filter</button> <button type="button" onClick=${clear}>Clear</button>
    </form>
  `;
}

/** @param {{ filters: import("../../api.js").Query }} props */
function Export({ filters }) {
  const [state, setState] = useState(/** @type {{ count: number, busy: boolean, error: any }} */ ({ count: 0, busy: false, error: null }));
  const run = async () => {
    const lines = /** @type {string[]} */ ([]);
    setState({ count: 0, busy: true, error: null });
    try {
      for await (const page of api.pages("/audit_events", { query: filters })) {
        lines.push(...page.map((one) => `${JSON.stringify(one)}\n`));
        setState({ count: lines.length, busy: true, error: null });
        if (lines.length >= MOST) break;
      }
      save(lines, "audit-events.jsonl", "application/jsonl");
      setState({ count: lines.length, busy: false, error: null });
    } catch (error) {
      setState({ count: lines.length, busy: false, error });
    }
  };
  return html`
    <div class="buttons">
      <button type="button" onClick=${run} disabled=${state.busy}>${state.busy && html`<span class="spinner"></span>`} Export as JSON lines</button>
    </div>
    ${state.count > 0 && html`<p class="quiet">${counted(state.count, "event")}${state.busy ? "…" : " exported."}${state.count >= MOST ? " Narrow the time for more." : ""}</p>`}
    <${ErrorNote} error=${state.error} retry=${run} />
    <${Curl} call=${{ method: "GET", path: "/audit_events", query: filters }} />
  `;
}

/** @param {{ event: AuditEvent, who: string, onClose: () => void }} props */
function Details({ event, who, onClose }) {
  const changes = Object.entries(event.changes ?? {});
  return html`<${Dialog} title=${event.action} onClose=${onClose}>
    <${Facts}
      facts=${[
        ["When", html`<${Time} value=${event.at} />`],
        ["Who", html`${who} <span class="quiet">by ${event.actor.api_key_id ? `key ${event.actor.api_key_id}` : event.actor.kind}</span>`],
        ["Subject", html`${event.subject.object} <code>${event.subject.id ?? "none"}</code>`],
        ["Team", session.value?.teams.find((team) => team.id === event.team_id)?.name ?? event.team_id],
        ["Address", event.address ?? "none"],
        ["Request", html`<code>${event.request_id ?? "none"}</code>`],
        ["Outcome", event.error ? html`${event.outcome}: <code>${event.error}</code>` : event.outcome],
      ]}
    />
    ${changes.length > 0 &&
    html`<div class="table-scroll" tabindex="0" role="region" aria-label="What was changed">
      <table>
        <thead><tr><th scope="col">Field</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
        <tbody>
          ${changes.map(([name, [before, after]]) => html`<tr key=${name}><th scope="row">${name}</th><td><code>${JSON.stringify(before)}</code></td><td><code>${JSON.stringify(after)}</code></td></tr>`)}
        </tbody>
      </table>
    </div>`}
    <div class="buttons"><button type="button" onClick=${onClose}>Close</button></div>
  <//>`;
}
