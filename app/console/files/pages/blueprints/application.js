// One application of a blueprint: its statements with what became of each, as it goes.
import { api } from "../../api.js";
import { Amount } from "../../components/amount.js";
import { ErrorNote } from "../../components/error-note.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { announce } from "../../announce.js";
import { counted } from "../../format.js";
import { html, useEffect } from "../../html.js";
import { useResource } from "../../live.js";
import { to } from "../../router.js";

const EVERY = 700;

/** @param {import("../../router.js").PageProps} props */
export default function ApplicationPage({ params: { uuid, id } }) {
  const crumbs = [
    { path: `/blueprints/${uuid}`, label: "Blueprint" },
    { path: `/blueprints/${uuid}/applications`, label: "Applications" },
  ];
  return html`<${Page} title=${`Application ${id}`} crumbs=${crumbs}><${Application} id=${id} /><//>`;
}

/**
 * @param {{ id: number | string, blueprint?: string, onEnd?: (application: any) => void }} props `blueprint`: leads to a
 *   page of its own. `onEnd` is told once it has ended.
 */
export function Application({ id, blueprint, onEnd }) {
  const { data, error, loading, reload } = useResource(
    (signal) => api.get("/blueprint_applications/{id}", { params: { id }, signal }),
    [id],
  );
  const one = data?.data;
  const ended = Boolean(one?.completed_at);
  useEffect(() => {
    if (loading || error || ended) return;
    const timer = setTimeout(reload, EVERY);
    return () => clearTimeout(timer);
  }, [loading, error, ended]);
  useEffect(() => {
    if (!one || !ended) return;
    announce(outcome(one));
    onEnd?.(one);
  }, [ended]);
  if (!one) return html`<${ErrorNote} error=${error} retry=${reload} /> ${!error && html`<p class="quiet" aria-busy="true"><span class="spinner"></span> Reading the log…</p>`}`;
  return html`
    <section class="application" aria-label=${one.is_dry_run ? "Dry run" : "Application"} aria-busy=${!ended}>
      <${ErrorNote} error=${error} retry=${reload} />
      <h2>${one.is_dry_run ? "Dry run" : "Application"} of version ${one.blueprint_version}</h2>
      <p>
        <${Status} value=${one.status} tone=${one.is_dry_run && one.status === "rolled_back" ? "good" : undefined} label=${outcome(one)} />${" "}
        ${one.total_duration_ms !== null && html`<span class="quiet">in <${Amount} value=${one.total_duration_ms / 1000} unit="seconds" /></span>`}
      </p>
      ${!ended &&
      html`<p>
        <progress max=${one.statements_total || 1} value=${one.statements_succeeded} aria-label="Statements done"></progress>${" "}
        ${one.statements_succeeded} of ${counted(one.statements_total, "statement")}
      </p>`}
      ${one.error_message && html`<div class="error-note"><p><strong>${one.error_message}</strong></p></div>`}
      <p class="quiet">
        <a href=${to(`/databases/${one.database_uuid}`)}>The database</a>, asked for <${Time} value=${one.created_at} />
        ${blueprint && html` · <a href=${to(`/blueprints/${blueprint}/applications/${one.id}`)}>On a page of its own</a>`}
      </p>
      <ol class="statements">
        ${(one.execution_log ?? []).map(
          (/** @type {any} */ entry) => html`<li key=${entry.index}>
            <pre tabindex="0" role="region" aria-label=${`Statement ${entry.index}`}>${entry.sql}</pre>
            <div class="outcome">
              <${Status} value=${entry.status} tone=${entry.status === "unknown" ? "warn" : undefined} />
              <span class="quiet">line ${entry.line}, ${entry.kind}</span>
              ${entry.rows !== null && html`<span class="quiet">${counted(entry.rows, "row")}</span>`}
              ${entry.duration_ms !== null && html`<span class="quiet"><${Amount} value=${entry.duration_ms / 1000} unit="seconds" /></span>`}
              ${entry.error && html`<p class="field-error">${entry.error.message} ${entry.error.code && html`<code>${entry.error.code}</code>`}</p>`}
              ${entry.note && html`<p class="quiet">${entry.note}</p>`}
            </div>
          </li>`,
        )}
      </ol>
    </section>
  `;
}

/** @param {any} one */
export function outcome(one) {
  if (one.status === "rolled_back") return one.is_dry_run ? "passed; nothing was changed" : "rolled back";
  return { pending: "waits for its turn", running: "runs", completed: "applied", failed: "failed" }[/** @type {string} */ (one.status)] ?? one.status;
}
