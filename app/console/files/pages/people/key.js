import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { ErrorNote } from "../../components/error-note.js";
import { Facts } from "../../components/facts.js";
import { Field } from "../../components/field.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { counted, number } from "../../format.js";
import { html, useState } from "../../html.js";
import { useResource } from "../../live.js";
import { to } from "../../router.js";
import { session } from "../../session.js";
import { KeyFields, useKeyForm } from "./key-form.js";
import { Once } from "./once.js";

/** @typedef {import("../../api.js").Schemas["KeyView"]} Key */

const OVERLAPS = [
  { value: "86400", label: "A day" },
  { value: "3600", label: "An hour" },
  { value: "604800", label: "A week" },
  { value: "0", label: "Not at all: it is refused from now on" },
];

/** @param {import("../../router.js").PageProps} props */
export default function KeyPage({ params }) {
  const { data, error, reload } = useResource(
    async (signal) => /** @type {Key} */ ((await api.get("/api_keys/{id}", { params: { id: params.id }, signal })).data),
    [params.id],
    { every: 30_000 },
  );
  const [renewed, setRenewed] = useState("");
  return html`<${Page} title=${data?.name ?? "API key"} crumbs=${[{ path: "/keys", label: "API keys" }]} status=${data && html`<${Status} value=${data.status} />`}>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!data && !error && html`<p class="page-loading" aria-busy="true"><span class="spinner"></span> Reading the key…</p>`}
    ${renewed && html`<${Once} title="The new key" label="the API key" text=${renewed} onSaved=${() => setRenewed("")} />`}
    ${data && html`<${Details} item=${data} />`}
    ${data && data.status !== "revoked" && html`<${Actions} item=${data} onRenewed=${setRenewed} reload=${reload} />`}
  <//>`;
}

/** @param {{ item: Key }} props */
function Details({ item }) {
  const { controls } = item;
  const team = session.value?.teams.find((one) => one.id === item.team_id);
  return html`<${Facts}
    facts=${[
      ["Key", html`<code>${item.preview}</code>`],
      ["May", item.permissions.map((scope) => html`<span class="label" key=${scope}>${scope}</span> `)],
      ["Team", item.team_id ? (team?.name ?? `team ${item.team_id}`) : "all of its user's"],
      ["Databases", item.databases ? item.databases.map((uuid) => html`<a key=${uuid} href=${to(`/databases/${uuid}`)}><code>${uuid}</code></a> `) : "all of its teams'"],
      ["Networks", controls.allowed_ip_list.join(", ") || "every address"],
      ["Limits", `${number(controls.requests_per_minute)} requests a minute, ${controls.monthly_quota ? number(controls.monthly_quota) : "any number"} a month`],
      ["Expires", html`<${Time} value=${item.expires_at} />`],
      ["Ends unused", controls.inactive_ttl_days ? `after ${counted(controls.inactive_ttl_days, "day")}` : "never"],
      ["Last used", html`<${Time} value=${item.last_used_at} relative />`],
      ["Made", html`<${Time} value=${item.created_at} />`],
      ...(item.previous ? [["Old text", html`works until <${Time} value=${item.previous.expires_at} />`]] : []),
      ...(item.revoked_at ? [["Revoked", html`<${Time} value=${item.revoked_at} />`]] : []),
    ]}
  />`;
}

/** @param {{ item: Key, onRenewed: (text: string) => void, reload: () => void }} props */
function Actions({ item, onRenewed, reload }) {
  const form = useKeyForm(item);
  const [overlap, setOverlap] = useState("86400");
  const [minted, setMinted] = useState(false);
  const at = { path: "/api_keys/{id}", params: { id: item.id } };
  const mine = item.user_id === session.value?.user.id;
  const renew = (/** @type {any} */ answer) => {
    onRenewed(answer.api_key);
    reload();
  };
  return html`
    <div class="buttons">
      ${mine &&
      html`<${Action} label="Change" title="Change the key" confirm="Save" call=${{ ...at, method: "PATCH", body: form.body }} ready=${form.ready} onOpen=${form.begin} onDone=${reload}>
          <${KeyFields} form=${form} />
        <//>
        <${Action}
          label="Replace its text"
          confirm="Replace"
          call=${{ method: "POST", path: "/api_keys/{id}/rotations", params: { id: item.id }, body: { overlap_seconds: Number(overlap) } }}
          onDone=${renew}
        >
          <p>You get a new text for the same key. Give it to the program while the old one still works.</p>
          <${Field} label="The old text works on for" value=${overlap} onValue=${setOverlap} options=${OVERLAPS} />
        <//>`}
      <${Action} label="Revoke" danger typed=${item.name} call=${{ ...at, method: "DELETE", query: minted ? { minted: true } : {} }} onDone=${reload}>
        <p>${mine ? "Its next request is refused, and nothing brings it back." : "It does nothing in your team any more."}</p>
        <${Field} type="checkbox" label="Revoke the keys that it has minted too" value=${minted} onValue=${setMinted} />
      <//>
    </div>
  `;
}
