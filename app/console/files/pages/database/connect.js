import { Copy } from "../../components/copy.js";
import { Curl } from "../../components/curl.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { html, useEffect, useState } from "../../html.js";
import { query, setQuery, to } from "../../router.js";
import { may } from "../../session.js";
import { DatabasePage, RoleNote, readPassword } from "./shell.js";
import { HIDDEN, snippets } from "./snippets.js";

/** @typedef {import("./snippets.js").Database} Database */

/** @param {{ params: { uuid: string } }} props */
export default function Connect({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid} part="/connect">
    ${(/** @type {Database} */ database) => html`<${Ways} database=${database} />`}
  <//>`;
}

/** @param {{ database: Database }} props */
function Ways({ database }) {
  const [password, setPassword] = useState(/** @type {string | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const ways = snippets(database, password ?? HIDDEN);
  const way = ways.find((one) => one.id === query().client) ?? ways[0];

  // It goes when the page is hidden, and with the page (`main.js`).
  useEffect(() => {
    const hidden = () => document.hidden && setPassword(null);
    document.addEventListener("visibilitychange", hidden);
    return () => document.removeEventListener("visibilitychange", hidden);
  }, []);

  const toggle = async () => {
    setError(null);
    if (password !== null) return setPassword(null);
    try {
      setPassword(await readPassword(database.uuid));
    } catch (fault) {
      setError(fault);
    }
  };

  const sees = may("member", database.team_id);
  return html`
    <dl class="facts">
      <dt>Host</dt><dd><code>${database.host}</code> <${Copy} text=${database.host} what="the host" /></dd>
      <dt>Port</dt><dd><code>${database.port}</code></dd>
      <dt>Database</dt><dd><code>${database.db_name}</code> <${Copy} text=${database.db_name} what="the database's name" /></dd>
      <dt>User</dt><dd><code>${database.db_username}</code> <${Copy} text=${database.db_username} what="the user" /></dd>
      <dt>Password</dt>
      <dd>
        <code>${password ?? HIDDEN}</code>${" "}
        <button type="button" class="small" aria-pressed=${password !== null} disabled=${!sees} onClick=${toggle}>
          ${password === null ? "Show the password" : "Hide the password"}
        </button>${" "}
        ${password !== null && html`<${Copy} text=${password} what="the password" />`}
      </dd>
      <dt>TLS</dt><dd>${TLS[database.tls_mode]}</dd>
    </dl>
    <${RoleNote} database=${database} what="see passwords" />
    <${ErrorNote} error=${error} />
    <${Curl} call=${{ method: "GET", path: "/databases/{uuid}", params: { uuid: database.uuid } }} />
    <h2>Snippets</h2>
    <div class="filters"><${Field}
      label="Client, language or framework"
      value=${way.id}
      onValue=${(/** @type {string} */ id) => setQuery({ client: id })}
      options=${ways.map(({ id, label }) => ({ value: id, label }))}
    /></div>
    <pre tabindex="0" role="region" aria-label=${`Snippet for ${way.label}`}>${way.text}</pre>
    ${way.note && html`<p class="quiet">${way.note}</p>`}
    <p>
      <${Copy} text=${way.text} what="the snippet" />${" "}
      ${way.text.includes(HIDDEN) && sees && html`<span class="quiet">Without the password, which is shown when you ask for it.</span>`}
      ${way.text.includes("DATABASE_PASSWORD") && way.id !== "env" && html`<span class="quiet">The password is in the environment.</span>`}
    </p>
    ${database.tls_ca && html`
      <h2>ca.pem</h2>
      <p>The authorities that sign the host's certificate. Save them beside the program.</p>
      <pre tabindex="0" role="region" aria-label="ca.pem">${database.tls_ca}</pre>
      <p><${Copy} text=${database.tls_ca} what="ca.pem" /></p>
    `}
    <p>
      Another password, or one for somebody else: <a href=${to(`/databases/${database.uuid}/users`)}>users and rotation</a>.
    </p>
  `;
}

const TLS = {
  disable: "Not offered: the host is reached without TLS.",
  prefer: "Used where the host offers it; nothing is verified.",
  require: "Required.",
  "verify-full": "Required, with a certificate for the host's name.",
};
