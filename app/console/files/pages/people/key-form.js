import { Field } from "../../components/field.js";
import { typedMoment } from "../../format.js";
import { html, useState } from "../../html.js";
import { session } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["KeyView"]} Key */

const SCOPES = [
  ...["databases:*", "databases:read", "databases:write", "backups:read", "backups:write"],
  ...["blueprints:read", "blueprints:write", "queries:write", "webhooks:read", "webhooks:write"],
  ...["keys:read", "keys:write", "teams:read", "teams:write", "audit:read"],
];
const OPERATORS = ["operator:read", "operator:write"];

const words = (/** @type {string} */ text) => text.split(/[\s,]+/).filter(Boolean);
const whole = (/** @type {string} */ text) => (text.trim() ? Number(text) : null);
const local = (/** @type {string | null | undefined} */ moment) => {
  if (!moment) return "";
  const at = new Date(moment);
  return new Date(at.getTime() - 60_000 * at.getTimezoneOffset()).toISOString().slice(0, 16);
};
const same = (/** @type {any} */ one, /** @type {any} */ other) => JSON.stringify(one) === JSON.stringify(other);

/** What the form begins with. @param {Key} [key] */
const fieldsOf = (key) => ({
  name: key?.name ?? "",
  permissions: key?.permissions ?? ["databases:read"],
  team: String(key?.team_id ?? ""),
  databases: (key?.databases ?? []).join("\n"),
  networks: (key?.controls.allowed_ip_list ?? []).join("\n"),
  rate: String(key?.controls.requests_per_minute ?? 120),
  quota: String(key?.controls.monthly_quota ?? ""),
  inactive: String(key?.controls.inactive_ttl_days ?? ""),
  expires: local(key?.expires_at),
});

/**
 * A hook: what a form for a key has, and the body of a request. Of a key that there is, only what was changed since
 * `begin`: what others have changed meanwhile stays.
 * @param {Key} [present]
 */
export function useKeyForm(present) {
  const [key, setKey] = useState(present);
  const [fields, setFields] = useState(() => fieldsOf(key));
  const databases = words(fields.databases);
  const controls = {
    requests_per_minute: whole(fields.rate) ?? 120,
    monthly_quota: whole(fields.quota),
    allowed_ip_list: words(fields.networks),
    inactive_ttl_days: whole(fields.inactive),
  };
  const expires_at = fields.expires === local(key?.expires_at) ? (key?.expires_at ?? null) : typedMoment(fields.expires);
  /** @type {Record<string, any>} */
  const body = {
    name: fields.name,
    permissions: fields.permissions,
    team_id: whole(fields.team),
    databases: databases.length ? databases : null,
    expires_at,
    controls,
  };
  if (key) {
    for (const [name, value] of Object.entries(controls)) {
      if (same(value, /** @type {any} */ (key.controls)[name])) delete body.controls[name];
    }
    for (const name of Object.keys(body)) if (same(body[name], /** @type {any} */ (key)[name])) delete body[name];
    if (same(body.controls, {})) delete body.controls;
  } else {
    for (const name of ["team_id", "databases", "expires_at"]) if (body[name] === null) delete body[name];
  }
  const set = (/** @type {string} */ name) => (/** @type {any} */ value) => setFields({ ...fields, [name]: value });
  const begin = () => {
    setKey(present);
    setFields(fieldsOf(present));
  };
  return { fields, set, begin, body, ready: fields.name.trim() !== "" && fields.permissions.length > 0 };
}

/** @param {{ form: ReturnType<typeof useKeyForm>, errors?: Record<string, string> }} props */
export function KeyFields({ form: { fields, set }, errors = {} }) {
  const scopes = [...SCOPES, ...(session.value?.operator ? OPERATORS : [])];
  const tick = (/** @type {string} */ scope) => (/** @type {boolean} */ on) =>
    set("permissions")(scopes.filter((one) => (one === scope ? on : fields.permissions.includes(one))));
  const teams = (session.value?.teams ?? []).map((team) => ({ value: String(team.id), label: team.name }));
  return html`
    <${Field} label="Name" value=${fields.name} onValue=${set("name")} error=${errors.name} hint="What uses it." autocomplete="off" maxlength="255" />
    <fieldset>
      <legend>What it may do</legend>
      <div class="ticks">
        ${scopes.map(
          (scope) => html`<${Field} key=${scope} type="checkbox" label=${scope} value=${fields.permissions.includes(scope)} onValue=${tick(scope)} />`,
        )}
      </div>
      ${errors.permissions && html`<p class="field-error">${errors.permissions}</p>`}
    </fieldset>
    <${Field} label="Team" value=${fields.team} onValue=${set("team")} error=${errors.team_id} options=${[{ value: "", label: "All of yours" }, ...teams]} />
    <${Field} label="Expires" type="datetime-local" value=${fields.expires} onValue=${set("expires")} error=${errors.expires_at} hint="In your time zone. Empty: never." />
    <details class="more">
      <summary>Networks, databases and limits</summary>
      <${Field} label="Networks" rows="2" value=${fields.networks} onValue=${set("networks")} error=${errors["controls.allowed_ip_list"]} hint="It works from these alone, such as 192.0.2.0/24. Empty: from everywhere." />
      <${Field} label="Databases" rows="2" value=${fields.databases} onValue=${set("databases")} error=${errors.databases} hint="Uuids; it sees these alone. Empty: all of its teams'." />
      <${Field} label="Requests a minute" type="number" min="1" value=${fields.rate} onValue=${set("rate")} error=${errors["controls.requests_per_minute"]} />
      <${Field} label="Requests a month" type="number" min="1" value=${fields.quota} onValue=${set("quota")} error=${errors["controls.monthly_quota"]} hint="Empty: no limit." />
      <${Field} label="Ends after days without use" type="number" min="1" value=${fields.inactive} onValue=${set("inactive")} error=${errors["controls.inactive_ttl_days"]} hint="Empty: it doesn't." />
    </details>
  `;
}
