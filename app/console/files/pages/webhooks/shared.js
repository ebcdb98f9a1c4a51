// What the pages of webhooks have in common.
import { ApiError } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Secret } from "../../components/secret.js";
import { html } from "../../html.js";
import { useResource } from "../../live.js";

/** What the API calls a timestamp, in UTC, as ISO 8601. @param {string | null | undefined} text */
export const moment = (text) => text && `${text.replace(" ", "T")}Z`;

/** @type {Promise<string[]> | undefined} */
let known;

/** The events that there are, as the API's description has them: read once. @returns {Promise<string[]>} */
export function eventNames() {
  known ??= fetch("/openapi.json")
    .then((answer) => {
      if (!answer.ok) throw new ApiError(answer.status, null, answer.headers.get("X-Request-Id") ?? "");
      return answer.json();
    })
    .then((description) => {
      const { parameters } = description.paths["/api/v1/webhook_endpoints/{id}/deliveries"].get;
      return parameters.find((/** @type {any} */ one) => one.name === "event_type").schema.enum;
    });
  known.catch(() => (known = undefined));
  return known;
}

/**
 * The events to choose among, which it reads. None chosen means all of them.
 * @param {{ chosen: string[], onChosen: (events: string[]) => void, error?: string }} props
 */
export function Events({ chosen, onChosen, error }) {
  const read = useResource(() => eventNames());
  const events = read.data ?? [];
  const all = chosen.length === 0;
  const flip = (/** @type {string} */ name) =>
    onChosen(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
  return html`
    <fieldset class="events">
      <legend>Events</legend>
      <${Field}
        type="checkbox"
        label="All of them, later ones too"
        value=${all}
        disabled=${all && events.length === 0}
        onValue=${(/** @type {boolean} */ on) => onChosen(on ? [] : events.slice(0, 1))}
      />
      ${!all &&
      html`<div class="columns">
        ${events
          .filter((name) => name !== "ping")
          .map((name) => html`<${Field} key=${name} type="checkbox" label=${name} value=${chosen.includes(name)} onValue=${() => flip(name)} />`)}
      </div>`}
      ${error && html`<p class="field-error">${error}</p>`}
      <${ErrorNote} error=${read.error} retry=${read.reload} />
    </fieldset>
  `;
}

/** A signing secret, shown this once. @param {{ secret: string }} props */
export function SigningSecret({ secret }) {
  return html`
    <p>Keep this signing secret now: it is not shown again.</p>
    <p><${Secret} label="the signing secret" load=${() => secret} shown /></p>
  `;
}
