import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { Amount } from "../../components/amount.js";
import { Copy } from "../../components/copy.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { html } from "../../html.js";
import { useResource } from "../../live.js";
import { may, rolesFrom } from "../../session.js";
import { moment } from "./shared.js";

/** @param {import("../../router.js").PageProps} props */
export default function DeliveryPage({ params: { id, delivery } }) {
  const { data, error, reload } = useResource(
    (signal) =>
      api.get("/webhook_endpoints/{id}/deliveries/{delivery_id}", { params: { id, delivery_id: delivery }, signal }),
    [id, delivery],
    { every: 3000 },
  );
  const one = data?.data;
  const allowed = may("member");
  const replay =
    one &&
    html`<${Action}
      label="Replay"
      title="Send it again"
      confirm="Send again"
      disabled=${!allowed}
      why=${allowed ? undefined : `Only ${rolesFrom("member")} replay deliveries.`}
      call=${{
        method: "POST",
        path: "/webhook_endpoints/{id}/deliveries/{delivery_id}/retries",
        params: { id, delivery_id: delivery },
        keyless: true,
      }}
      onDone=${reload}
    >
      <p>The same body is sent again with the same webhook-id, whatever became of it, from the start of the schedule.</p>
    <//>`;
  return html`<${Page}
    title=${one ? `${one.event_type}, delivery ${one.id}` : "Delivery"}
    crumbs=${[
      { path: "/webhooks", label: "Webhooks" },
      { path: `/webhooks/${id}`, label: "Endpoint" },
    ]}
    status=${one && html`<${Status} value=${one.status} />`}
    actions=${replay}
  >
    <${ErrorNote} error=${error} retry=${reload} />
    ${!one && !error && html`<p class="quiet" aria-busy="true"><span class="spinner"></span> Loading…</p>`}
    ${one &&
    html`
      <dl>
        <dt>webhook-id</dt>
        <dd><code>${one.webhook_id}</code></dd>
        <dt>Made</dt>
        <dd><${Time} value=${moment(one.created_at)} /></dd>
        ${one.next_attempt_at && html`<dt>Next attempt</dt><dd><${Time} value=${one.next_attempt_at} relative /></dd>`}
      </dl>
      <h2>What is sent</h2>
      <pre class="wrapped" tabindex="0" role="region" aria-label="Body that is sent">${indented(one.request_body)}</pre>
      <p><${Copy} text=${one.request_body} what="the body as it is sent" /></p>
      <h2>Attempts</h2>
      ${one.attempts.length === 0 && html`<p class="quiet">None yet.</p>`}
      <ol class="attempts">
        ${one.attempts.map(
          (/** @type {any} */ attempt, /** @type {number} */ at) => html`<li key=${at} class="panel">
            <p>
              <${Status} value=${delivered(attempt) ? "delivered" : "failed"} label=${attempt.response_code ?? "no answer"} />${" "}
              <span class="quiet"><${Time} value=${attempt.created_at} />, <${Amount} value=${attempt.duration_ms / 1000} unit="seconds" /></span>
            </p>
            ${attempt.error_message && html`<p class="value">${attempt.error_message}</p>`}
            ${attempt.response_body
              ? html`<pre class="wrapped" tabindex="0" role="region" aria-label=${`Answer to attempt ${at + 1}`}>${attempt.response_body}</pre>`
              : html`<p class="quiet">The answer had no body.</p>`}
          </li>`,
        )}
      </ol>
    `}
  <//>`;
}

/** @param {any} attempt */
const delivered = (attempt) => attempt.response_code >= 200 && attempt.response_code < 300;

/** For readers: JSON on several lines. @param {string} text */
function indented(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
