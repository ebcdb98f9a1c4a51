// Registering a server that is to hold databases.
import { Action } from "../../components/action.js";
import { Field } from "../../components/field.js";
import { ENGINE_OPTIONS, USUAL_ENGINE } from "../../engines.js";
import { html, useState } from "../../html.js";
import { forOperators } from "../../session.js";

const EMPTY = {
  db_type: USUAL_ENGINE,
  region: "",
  admin_host: "",
  admin_port: "",
  admin_user: "",
  admin_password: "",
  admin_database: "",
  tls: "",
  ca: "",
  public_host: "",
  public_port: "",
  capacity: "",
  connection_capacity: "",
  connection_overcommit: "",
};
const NUMBERS = ["admin_port", "public_port", "capacity", "connection_capacity", "connection_overcommit"];
const TLS = [
  { value: "", label: "As usual: verify-full, none on this machine" },
  { value: "verify-full", label: "verify-full: authority and name are checked" },
  { value: "require", label: "require: encrypted; the authority is checked if one is given" },
  { value: "disable", label: "disable: none" },
];

/** @param {{ onDone: () => void }} props */
export function AddHost({ onDone }) {
  const [fields, setFields] = useState(/** @type {Record<string, string>} */ (EMPTY));
  const field = (/** @type {string} */ name) => ({
    value: fields[name],
    onValue: (/** @type {string} */ value) => setFields((was) => ({ ...was, [name]: value })),
    autocomplete: "off",
    spellcheck: "false",
  });
  const given = Object.entries(fields).filter(([name, value]) => value !== "" || name === "admin_password");
  const body = Object.fromEntries(given.map(([name, value]) => [name, NUMBERS.includes(name) ? Number(value) : value]));
  const call = { method: "POST", path: "/operator/hosts", body };
  const shown = { ...call, body: { ...body, admin_password: "…" } };
  return html`<${Action}
    primary
    label="Add a host"
    ...${forOperators()}
    confirm="Add it"
    call=${call}
    shown=${shown}
    ready=${fields.region !== "" && fields.admin_host !== "" && fields.admin_user !== ""}
    onOpen=${() => setFields(EMPTY)}
    onDone=${() => {
      setFields(EMPTY);
      onDone();
    }}
    result=${added}
  >
    <p>It is checked, hardened and registered; one that is registered is brought up to date.</p>
    <div class="pair">
      <${Field} label="Engine" ...${field("db_type")} options=${ENGINE_OPTIONS} />
      <${Field} label="Region" ...${field("region")} maxlength="32" hint="A worker serves it." />
      <${Field} label="Administrator's host" ...${field("admin_host")} maxlength="253" hint="As Headwater reaches it." />
      <${Field} label="Administrator's port" ...${field("admin_port")} type="number" min="1" max="65535" hint="The usual one unless given." />
      <${Field} label="Administrator's user" ...${field("admin_user")} maxlength="128" />
      <${Field} label="Administrator's password" ...${field("admin_password")} type="password" autocomplete="new-password" maxlength="1024" />
    </div>
    <${Field} label="TLS" ...${field("tls")} options=${TLS} />
    <${Field} label="Certificate authorities" ...${field("ca")} rows="3" hint="A PEM; those that this machine trusts unless given." />
    <details>
      <summary>Database, public address, capacity</summary>
      <div class="pair">
        <${Field} label="Administrator's database" ...${field("admin_database")} maxlength="128" />
        <${Field} label="Public host" ...${field("public_host")} maxlength="253" hint="As clients reach it; the same unless given." />
        <${Field} label="Public port" ...${field("public_port")} type="number" min="1" max="65535" />
        <${Field} label="Most databases" ...${field("capacity")} type="number" min="1" hint="1000 unless given." />
        <${Field} label="Most connections" ...${field("connection_capacity")} type="number" min="1" hint="Sessions open together; what the server admits unless given." />
        <${Field} label="Allocated each" ...${field("connection_overcommit")} type="number" min="1" max="1000" hint="How many times; 10 unless given." />
      </div>
    </details>
  <//>`;
}

/** @param {{ data: { host: string, port: number, flavour: string, version: string, shortcomings: string[] } }} answer */
function added({ data }) {
  return html`
    <p>${data.host}:${data.port} is registered: ${data.flavour} ${data.version}.</p>
    ${data.shortcomings.length > 0 &&
    html`<p>What it lacks:</p><ul>${data.shortcomings.map((one) => html`<li key=${one}>${one}</li>`)}</ul>`}
  `;
}
