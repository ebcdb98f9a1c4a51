import { Listing } from "../../components/listing.js";
import { OnlyFor } from "../../components/only-for.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { counted } from "../../format.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { to } from "../../router.js";
import { may } from "../../session.js";
import { moment } from "./shared.js";

/** @typedef {import("../../api.js").Schemas["EndpointView"]} Endpoint */

export default function Webhooks() {
  const list = useList("/webhook_endpoints", { every: 10_000 });
  const create = may("member") && html`<a class="button primary" href=${to("/webhooks/new")}>New endpoint</a>`;
  return html`<${Page} title="Webhooks" actions=${create}>
    <${OnlyFor} what="make endpoints" />
    <${Listing}
      list=${list}
      label="Webhook endpoints"
      empty=${{
        title: "No endpoints yet",
        children: html`<p>An endpoint is an HTTPS address of yours. What happens to a team's databases is sent there, signed.</p>`,
      }}
      columns=${[
        { label: "URL", class: "main", cell: (/** @type {Endpoint} */ row) => html`<a class="value" href=${to(`/webhooks/${row.id}`)}>${row.url}</a>` },
        { label: "Status", cell: (/** @type {Endpoint} */ row) => html`<${Status} value=${row.status} />` },
        { label: "Events", wide: true, cell: (/** @type {Endpoint} */ row) => (row.events.length ? counted(row.events.length, "event") : "all") },
        { label: "Last delivered", wide: true, cell: (/** @type {Endpoint} */ row) => html`<${Time} value=${moment(row.last_success_at)} relative />` },
        { label: "Last failed", wide: true, cell: (/** @type {Endpoint} */ row) => html`<${Time} value=${moment(row.last_failure_at)} relative />` },
      ]}
    />
  <//>`;
}
