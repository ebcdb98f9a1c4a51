import { api, isRefused } from "../api.js";
import { Action } from "../components/action.js";
import { Copy } from "../components/copy.js";
import { ErrorNote } from "../components/error-note.js";
import { Page } from "../components/page.js";
import { Steps } from "../components/steps.js";
import { Time } from "../components/time.js";
import { seconds, words } from "../format.js";
import { html, useEffect, useRef } from "../html.js";
import { ended, useOperation, useResource } from "../live.js";
import { announce } from "../announce.js";
import { to } from "../router.js";

/** @param {{ params: { uuid: string } }} props */
export default function OneOperation({ params: { uuid } }) {
  const params = { uuid };
  // Read at first and now and then: a stream that is refused, because there are too many, leaves this.
  const { data, error, reload } = useResource((signal) => api.get("/operations/{uuid}", { params, signal }), [uuid], { every: 10_000 });
  const read = data?.data;
  const streamed = useOperation(uuid);
  const newest = read && ended(read) ? read : (streamed ?? read);
  // The stream may have ended before the person left the team.
  const operation = isRefused(error) ? undefined : newest;
  const database = useResource(
    async (signal) => {
      if (!operation) return null;
      const answer = await api.get("/databases/{uuid}", { params: { uuid: operation.database_uuid }, signal }).catch(() => null);
      return answer !== null;
    },
    [operation?.database_uuid, operation?.status],
  );
  const status = operation?.status;
  const before = useRef(status);
  useEffect(() => {
    if (status && before.current && before.current !== status) announce(`The operation is ${status}.`);
    before.current = status;
  }, [status]);

  const type = operation && words(operation.type);
  const name = operation?.database_name;
  const over = operation !== undefined && ended(operation);
  return html`<${Page}
    title=${operation ? `${name}: ${type}` : "Operation"}
    crumbs=${[
      { path: "/databases", label: "Databases" },
      ...(operation && database.data ? [{ path: `/databases/${operation.database_uuid}/operations`, label: operation.database_name }] : []),
      { path: "/operations", label: "Operations" },
    ]}
  >
    <${ErrorNote} error=${error} retry=${reload} />
    ${!error && html`<${Steps} operation=${operation} />`}
    ${operation &&
    html`
      ${!over &&
      html`<div class="buttons">
        <${Action} label="Retry now" call=${{ method: "POST", path: "/operations/{uuid}/retries", params }} disabled=${status !== "waiting"} why="Only what waits has a next attempt to bring forward." onDone=${reload}>
          <p>The next attempt is made now, not when it is due.</p>
        <//>
        <${Action} label="Cancel the operation" confirm="Cancel it" danger call=${{ method: "POST", path: "/operations/{uuid}/cancellations", params }} disabled=${!operation.cancellable} why="It can't be cancelled any more." onDone=${reload}>
          <p>What it has changed so far is undone.</p>
        <//>
      </div>`}
      ${!over && !operation.cancellable && html`<p class="quiet">It is past the step up to which it can be cancelled.</p>`}
      <dl class="facts">
        <dt>Database</dt>
        <dd>
          ${database.data !== false ? html`<a href=${to(`/databases/${operation.database_uuid}`)}>${name}</a>` : html`${name} <a href=${to("/databases/deleted")}>Deleted databases</a>`}
        </dd>
        ${operation.type === "apply_blueprint" && html`<dt>Log</dt><dd><a href=${to(`/databases/${operation.database_uuid}/blueprints`)}>Applications to the database</a></dd>`}
        <dt>Asked for</dt><dd><${Time} value=${operation.created_at} /></dd>
        <dt>Begun</dt><dd><${Time} value=${operation.started_at} none="not yet" /></dd>
        <dt>Ended</dt><dd><${Time} value=${operation.finished_at} none="not yet" /></dd>
        ${operation.expected_seconds !== null && html`<dt>Usually takes</dt><dd>${seconds(operation.expected_seconds)}</dd>`}
        ${operation.deadline_at && !over && html`<dt>Overdue after</dt><dd><${Time} value=${operation.deadline_at} /></dd>`}
        <dt>UUID</dt><dd><code>${uuid}</code> <${Copy} text=${uuid} what="the UUID" /></dd>
        ${operation.request_id && html`<dt>Request</dt><dd><code>${operation.request_id}</code> <${Copy} text=${operation.request_id} what="the request's id" /></dd>`}
        ${operation.workflow_id && html`<dt>Workflow</dt><dd><code>${operation.workflow_id}</code></dd>`}
      </dl>
    `}
  <//>`;
}
