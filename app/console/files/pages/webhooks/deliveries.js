import { useAction } from "../../action.js";
import { Curl } from "../../components/curl.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { setQuery, to } from "../../router.js";
import { may, rolesFrom } from "../../session.js";
import { EndpointPage } from "./frame.js";
import { eventNames, moment } from "./shared.js";

/** @typedef {import("../../api.js").Schemas["DeliveryView"]} Delivery */

/** @param {import("../../router.js").PageProps} props */
export default function Deliveries({ params: { id }, query }) {
  return html`<${EndpointPage} id=${id}>
    ${(/** @type {any} */ endpoint, /** @type {() => void} */ reload) => html`<${Listed} endpoint=${endpoint} query=${query} onSent=${reload} />`}
  <//>`;
}

/** @param {{ endpoint: any, query: Record<string, string>, onSent: () => void }} props */
function Listed({ endpoint, query, onSent }) {
  const { status, event_type } = query;
  const list = useList("/webhook_endpoints/{id}/deliveries", {
    params: { id: endpoint.id },
    query: { status, event_type },
    every: 5000,
  });
  const events = useResource(() => eventNames());
  const all = (/** @type {string} */ label) => ({ value: "", label });
  return html`
    ${endpoint.status === "active" &&
    html`<${Ping}
      endpoint=${endpoint}
      onSent=${() => {
        list.reload();
        onSent();
      }}
    />`}
    <div class="filters">
      <${Field}
        label="Status"
        value=${status ?? ""}
        options=${[all("All"), "pending", "delivered", "failed"]}
        onValue=${(/** @type {string} */ value) => setQuery({ status: value })}
      />
      <${Field}
        label="Event"
        value=${event_type ?? ""}
        options=${[all("All"), ...(events.data ?? [])]}
        onValue=${(/** @type {string} */ value) => setQuery({ event_type: value })}
      />
    </div>
    <${ErrorNote} error=${events.error} retry=${events.reload} />
    <${Listing}
      list=${list}
      label="Deliveries"
      empty=${
        status || event_type
          ? { title: "No such deliveries", children: html`<p>There may be others: choose another status or event.</p>` }
          : { title: "Nothing was sent yet", children: html`<p>Send a test, or change a database of the team.</p>` }
      }
      columns=${[
        {
          label: "Event",
          class: "main",
          cell: (/** @type {Delivery} */ row) => html`<a href=${to(`/webhooks/${endpoint.id}/deliveries/${row.id}`)}>${row.event_type}</a>`,
        },
        { label: "Status", cell: (/** @type {Delivery} */ row) => html`<${Status} value=${row.status} />` },
        { label: "Answer", class: "breaks", wide: true, cell: (/** @type {Delivery} */ row) => html`<span class="value">${row.response_code ?? row.error_message ?? ""}</span>` },
        { label: "Attempts", wide: true, class: "number", cell: (/** @type {Delivery} */ row) => row.attempt_count },
        { label: "Made", wide: true, cell: (/** @type {Delivery} */ row) => html`<${Time} value=${moment(row.created_at)} relative />` },
      ]}
    />
  `;
}

/** @param {{ endpoint: any, onSent: () => void }} props */
function Ping({ endpoint, onSent }) {
  const call = { method: "POST", path: "/webhook_endpoints/{id}/test_deliveries", params: { id: endpoint.id }, keyless: true };
  const test = useAction(/** @type {any} */ (call), onSent);
  const allowed = may("member", endpoint.team_id);
  const sent = test.answer?.data;
  return html`
    <div class="ping">
      <div class="buttons">
        <button type="button" disabled=${test.running || !allowed} title=${allowed ? undefined : `Only ${rolesFrom("member")} send tests.`} onClick=${test.run}>
          ${test.running && html`<span class="spinner"></span>`} Send a test
        </button>
      </div>
      <div role="status">
        ${test.running && html`<p class="quiet">Sent; the receiver has 15 seconds to answer.</p>`}
        ${sent &&
        html`<p>
          <${Status} value=${sent.status} />${" "}
          ${sent.response_code !== null ? `answered ${sent.response_code}` : sent.error_message}
        </p>`}
      </div>
      <${ErrorNote} error=${test.error} />
      <${Curl} call=${call} idempotencyKey=${test.key} />
    </div>
  `;
}
