// The person's own account: their passkeys, and where they are signed in.
import { Action } from "../components/action.js";
import { ErrorNote } from "../components/error-note.js";
import { Field } from "../components/field.js";
import { Listing } from "../components/listing.js";
import { Page } from "../components/page.js";
import { Status } from "../components/status.js";
import { Time } from "../components/time.js";
import { html, useState } from "../html.js";
import { useList } from "../lists.js";
import { addPasskey, passkeysWork } from "../passkeys.js";
import { session } from "../session.js";

/** @typedef {import("../api.js").Schemas["SessionView"]} SessionView */
/** @typedef {import("../api.js").Schemas["PasskeyView"]} PasskeyView */

const METHODS = { link: "a\u00a0link", passkey: "a\u00a0passkey", oidc: "a\u00a0provider" };

export default function Account() {
  const user = session.value?.user;
  return html`
    <${Page} title="Your account">
      <dl class="facts">
        <dt>Name</dt>
        <dd>${user?.name}</dd>
        <dt>Email</dt>
        <dd>${user?.email}</dd>
        <dt>Teams</dt>
        <dd>${session.value?.teams.map((team) => `${team.name} (${team.role})`).join(", ") || "none"}</dd>
      </dl>
      <${Passkeys} />
      <${Sessions} />
    <//>
  `;
}

function Passkeys() {
  const list = useList("/passkeys");
  return html`
    <section>
      <h2>Passkeys</h2>
      <${Listing}
        list=${list}
        label="Passkeys"
        columns=${passkeyColumns(list.reload)}
        empty=${{
          title: "No passkey yet",
          children: html`<p>With a passkey you sign in by your device: by a fingerprint, a PIN or a security key, and without a link.</p>`,
        }}
      />
      <${AddPasskey} onDone=${list.reload} />
    </section>
  `;
}

/** @param {() => void} reload */
const passkeyColumns = (reload) => [
  { label: "Name", class: "main", cell: (/** @type {PasskeyView} */ one) => one.name },
  { label: "For", wide: true, cell: (/** @type {PasskeyView} */ one) => one.host },
  { label: "Added", wide: true, cell: (/** @type {PasskeyView} */ one) => html`<${Time} value=${one.created_at} />` },
  { label: "Last used", cell: (/** @type {PasskeyView} */ one) => html`<${Time} value=${one.last_used_at} />` },
  {
    label: "Actions",
    cell: (/** @type {PasskeyView} */ one) => html`
      <${Rename} passkey=${one} onDone=${reload} />
      <${Action}
        label="Remove"
        title=${`Remove ${one.name}`}
        small
        danger
        call=${{ method: "DELETE", path: "/passkeys/{uuid}", params: { uuid: one.uuid } }}
        onDone=${reload}
      >
        <p>Nobody signs in with it any more. Sessions that it has opened stay.</p>
      <//>
    `,
  },
];

/** @param {{ passkey: PasskeyView, onDone: () => void }} props */
function Rename({ passkey, onDone }) {
  const [name, setName] = useState(passkey.name);
  return html`<${Action}
    label="Rename"
    title=${`Rename ${passkey.name}`}
    small
    call=${{ method: "PATCH", path: "/passkeys/{uuid}", params: { uuid: passkey.uuid }, body: { name } }}
    ready=${name.trim() !== ""}
    onOpen=${() => setName(passkey.name)}
    onDone=${onDone}
  >
    <${Field} label="Name" value=${name} onValue=${setName} maxlength="100" />
  <//>`;
}

/** @param {{ onDone: () => void }} props */
function AddPasskey({ onDone }) {
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {unknown} */ (null));
  if (!passkeysWork) {
    return html`<p class="hint">
      To add a passkey, open the console by a host's name, such as <code>localhost</code>, with a browser that has passkeys.
    </p>`;
  }
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await addPasskey(name);
      setName("");
      onDone();
    } catch (fault) {
      setError(fault);
    }
    setBusy(false);
  };
  return html`
    <form class="form" onSubmit=${add}>
      <${Field} label="Name of a new passkey" value=${name} onValue=${setName} hint="Such as the device's." maxlength="100" />
      <${ErrorNote} error=${error} />
      <div class="buttons">
        <button disabled=${busy || !name.trim()}>${busy && html`<span class="spinner"></span>`} Add a passkey</button>
      </div>
    </form>
  `;
}

function Sessions() {
  const list = useList("/sessions", { every: 30_000 });
  const here = list.rows?.find((one) => one.current);
  return html`
    <section>
      <div class="heading">
        <h2>Where you are signed in</h2>
        <div class="actions">
          <${SignOut} uuid=${here?.uuid} />
          <${Action}
            label="Sign out everywhere"
            danger
            call=${{ method: "DELETE", path: "/sessions" }}
            onDone=${signedOut}
          >
            <p>Ends all of your sessions, this one too. Your API keys stay.</p>
          <//>
        </div>
      </div>
      <${Listing} list=${list} label="Where you are signed in" columns=${columns(list.reload)} empty=${{ title: "Nowhere" }} />
    </section>
  `;
}

/** @param {() => void} reload */
const columns = (reload) => [
  {
    label: "Browser",
    class: "main",
    cell: (/** @type {SessionView} */ one) =>
      html`${browser(one.user_agent)} ${one.current && html`<${Status} value="this one" tone="good" />`}`,
  },
  { label: "From", wide: true, cell: (/** @type {SessionView} */ one) => one.address },
  { label: "By", wide: true, cell: (/** @type {SessionView} */ one) => METHODS[one.method] },
  { label: "Last used", cell: (/** @type {SessionView} */ one) => html`<${Time} value=${one.last_used_at} relative />` },
  { label: "Ends", wide: true, cell: (/** @type {SessionView} */ one) => html`<${Time} value=${one.idle_expires_at} />` },
  {
    label: "Actions",
    cell: (/** @type {SessionView} */ one) =>
      !one.current &&
      html`<${Action}
        label="End"
        title="End this session"
        small
        danger
        call=${{ method: "DELETE", path: "/sessions/{uuid}", params: { uuid: one.uuid } }}
        onDone=${reload}
      >
        <p>${browser(one.user_agent)} at ${one.address} is signed out with its next request.</p>
      <//>`,
  },
];

/** @param {{ uuid: string | undefined }} props */
function SignOut({ uuid }) {
  return html`<${Action}
    label="Sign out"
    disabled=${!uuid}
    call=${{ method: "DELETE", path: "/sessions/{uuid}", params: { uuid: uuid ?? "" } }}
    onDone=${signedOut}
  >
    <p>Ends this session. You sign in again by a link or a passkey.</p>
  <//>`;
}

/** Leaves nothing of the person in the page. */
function signedOut() {
  location.assign("/console/sign-in");
}

/** What a person calls a browser and its system; all of what it calls itself where that says neither. @param {string} agent */
function browser(agent) {
  const name = ["Edg", "OPR", "Firefox", "Chrome", "Safari"].find((one) => agent.includes(`${one}/`));
  const system = ["Windows", "Android", "iPhone", "iPad", "Mac OS X", "Linux"].find((one) => agent.includes(one));
  const shown = { Edg: "Edge", OPR: "Opera" };
  if (!name) return agent || "unknown";
  return [shown[/** @type {"Edg" | "OPR"} */ (name)] ?? name, system && `on ${system}`].filter(Boolean).join(" ");
}
