import { seconds, words } from "../format.js";
import { html, useEffect, useState } from "../html.js";
import { Status } from "./status.js";
import { Time } from "./time.js";

/**
 * The steps of an operation, as they go: how long each took, how often it was tried, and why it waits.
 * @param {{ operation: import("../api.js").Schemas["OperationView"] | undefined }} props
 */
export function Steps({ operation }) {
  useTick(operation !== undefined && !operation.finished_at);
  if (!operation) return html`<p class="quiet" aria-busy="true"><span class="spinner"></span> Reading the steps…</p>`;
  const { progress, reason } = operation;
  return html`
    <div class="steps" aria-busy=${!operation.finished_at}>
      <p>
        <${Status} value=${operation.status} />${" "}
        <span class="quiet">${operation.started_at ? took(operation) : !operation.finished_at && `for ${took({ ...operation, started_at: operation.created_at })}`}</span>
      </p>
      ${reason &&
      html`<p class="reason">
        ${reason.message} <code>${reason.code}</code>
        ${reason.next_attempt_at && html` Next attempt: <${Time} value=${reason.next_attempt_at} relative />.`}
      </p>`}
      ${progress &&
      progress.total > 0 &&
      html`<p>
        <progress max=${progress.total} value=${progress.done} aria-label="Progress"></progress>${" "}
        ${progress.done} of ${progress.total} ${progress.unit}
      </p>`}
      <ol>
        ${operation.steps.map(
          (step) => html`<li key=${step.name} class=${step.status}>
            <${Status} value=${step.status} label=${words(step.name)} />
            <span class="visually-hidden">: ${step.status}</span>
            ${step.started_at && html` <span class="quiet">${took(step)}</span>`}
            ${step.attempts > 1 && html`<span class="quiet">, attempt ${step.attempts}</span>`}
            ${step.detail && html`<span class="detail">${step.detail}</span>`}
          </li>`,
        )}
      </ol>
    </div>
  `;
}

/** @param {{ started_at: string | null, finished_at: string | null }} what */
function took({ started_at, finished_at }) {
  if (!started_at) return "";
  const end = finished_at ? new Date(finished_at).getTime() : Date.now();
  return seconds(Math.max(0, end - new Date(started_at).getTime()) / 1000);
}

/** A hook: draws again each second, so that what waits shows that it lives. @param {boolean} on */
export function useTick(on) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => document.hidden || tick((one) => one + 1), 1000);
    return () => clearInterval(timer);
  }, [on]);
}
