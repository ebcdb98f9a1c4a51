import { api } from "../../api.js";
import { Action } from "../../components/action.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Status } from "../../components/status.js";
import { Time } from "../../components/time.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { navigate } from "../../router.js";
import { may, readSession, rolesFrom, session } from "../../session.js";
import { Once } from "./once.js";

/** @typedef {import("../../api.js").Schemas["MemberView"]} Member */
/** @typedef {import("../../api.js").Schemas["InvitationView"]} Invitation */

const ROLES = ["viewer", "member", "admin", "owner"];
const WEEK = 604_800;
const SPANS = [
  { value: String(WEEK), label: "A week" },
  { value: "86400", label: "A day" },
  { value: "2592000", label: "30 days" },
];

/** @param {import("../../router.js").PageProps} props */
export default function TeamPage({ params }) {
  const id = Number(params.id);
  const { data: team, error, reload } = useResource(
    async (signal) => (await api.get("/teams/{id}", { params, signal })).data,
    [id],
    { every: 30_000 },
  );
  const [link, setLink] = useState("");
  const admin = may("admin", id);
  return html`<${Page} title=${team?.name ?? "Team"} crumbs=${[{ path: "/teams", label: "Teams" }]}>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!team && !error && html`<p class="page-loading" aria-busy="true"><span class="spinner"></span> Reading the team…</p>`}
    ${team &&
    html`<p>Your role is <strong>${team.role}</strong>. The tier is ${team.tier}. ${!admin && `Only ${rolesFrom("admin")} manage who is in the team.`}</p>
      <${Members} id=${id} />
      ${admin &&
      html`<h2 class="section">Invitations</h2>
        ${link && html`<${Once} title="The link of the invitation" label="the link" text=${link} onSaved=${() => setLink("")}>
          <p>Whoever follows it first joins the team. It works once.</p>
        <//>`}
        <${Invitations} id=${id} onLink=${setLink} />`}
      ${may("owner", id) && html`<${Owning} team=${team} reload=${reload} />`}`}
  <//>`;
}

/** The roles that the person gives to others in the team. @param {number} id */
const given = (id) => (may("owner", id) ? ROLES : ROLES.slice(0, 3));

/** @param {{ id: number }} props */
function Members({ id }) {
  const list = useList("/teams/{id}/members", { params: { id }, id: (/** @type {Member} */ one) => one.user_id });
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  /** @type {import("../../components/table.js").Column<Member>[]} */
  const columns = [
    { label: "Name", class: "main", cell: (member) => member.name },
    { label: "Email", class: "breaks", wide: true, cell: (member) => member.email },
    { label: "Role", cell: (member) => member.role },
    { label: "Joined", wide: true, cell: (member) => html`<${Time} value=${member.joined_at} relative />` },
    { label: "Actions", class: "nowrap", cell: (member) => html`<${MemberActions} key=${member.role} member=${member} again=${list.reload} />` },
  ];
  return html`
    <h2 class="section">Members</h2>
    <${Listing} list=${list} label="Members" columns=${columns} empty=${{ title: "Nobody" }} />
    ${may("admin", id) &&
    html`<${Action} label="Add a member" confirm="Add" call=${{ method: "POST", path: "/teams/{id}/members", params: { id }, body: { email, role } }} ready=${email !== ""} onOpen=${() => setEmail("")} onDone=${list.reload}>
      <p>Somebody who is in another team with you. Invite everybody else.</p>
      <${Field} label="Email" type="email" value=${email} onValue=${setEmail} autocomplete="off" />
      <${Field} label="Role" value=${role} onValue=${setRole} options=${given(id)} />
    <//>`}
  `;
}

/** @param {{ member: Member, again: () => void }} props */
function MemberActions({ member, again }) {
  const { team_id: id, user_id, name } = member;
  const [role, setRole] = useState(/** @type {string} */ (member.role));
  const me = user_id === session.value?.user.id;
  const manages = may("owner", id) || (may("admin", id) && member.role !== "owner");
  const at = { path: "/teams/{id}/members/{user_id}", params: { id, user_id } };
  const left = async () => {
    await readSession();
    if (me) navigate("/teams");
    else again();
  };
  const changed = async () => {
    if (me) await readSession();
    again();
  };
  return html`
    ${manages &&
    html`<${Action} small label="Role" title=${`The role of ${name}`} confirm="Save" call=${{ ...at, method: "PATCH", body: { role } }} onOpen=${() => setRole(member.role)} onDone=${changed}>
      <${Field} label="Role" value=${role} onValue=${setRole} options=${given(id)} />
    <//>${" "}`}
    ${(manages || me) &&
    html`<${Action} small danger label=${me ? "Leave" : "Remove"} title=${me ? "Leave the team" : `Remove ${name}`} call=${{ ...at, method: "DELETE" }} onDone=${left}>
      <p>${me ? "Your keys do" : `The keys of ${name} do`} nothing in this team any more, also after coming back.</p>
    <//>`}
  `;
}

/** @param {{ id: number, onLink: (link: string) => void }} props */
function Invitations({ id, onLink }) {
  const list = useList("/teams/{id}/invitations", { params: { id } });
  const [role, setRole] = useState("member");
  const [span, setSpan] = useState(String(WEEK));
  const [email, setEmail] = useState("");
  const body = { role, expires_in_seconds: Number(span), ...(email && { email }) };
  const made = (/** @type {any} */ answer) => {
    onLink(location.origin + answer.link);
    list.reload();
  };
  /** @type {import("../../components/table.js").Column<Invitation>[]} */
  const columns = [
    { label: "Role", class: "main", cell: (one) => html`${one.role} ${one.email && html`<span class="quiet">for ${one.email}</span>`}` },
    { label: "Status", cell: (one) => html`<${Status} value=${one.status} tone=${one.status === "open" ? "idle" : one.status === "accepted" ? "good" : "idle"} />` },
    { label: "Expires", wide: true, cell: (one) => html`<${Time} value=${one.expires_at} relative />` },
    {
      label: "Actions",
      class: "nowrap",
      cell: (one) =>
        one.status === "open" &&
        html`<${Action} small danger label="Withdraw" title="Withdraw the invitation" call=${{ method: "DELETE", path: "/teams/{id}/invitations/{invitation_id}", params: { id, invitation_id: one.id } }} onDone=${list.reload}>
          <p>Its link is nobody's from then on.</p>
        <//>`,
    },
  ];
  return html`
    <${Listing} list=${list} label="Invitations" columns=${columns} empty=${{ title: "No invitations", children: html`<p>An invitation is a link that works once.</p>` }} />
    <${Action} label="Invite somebody" confirm="Make the link" call=${{ method: "POST", path: "/teams/{id}/invitations", params: { id }, body }} onOpen=${() => setEmail("")} onDone=${made}>
      <${Field} label="Role" value=${role} onValue=${setRole} options=${given(id)} />
      <${Field} label="For the address" type="email" value=${email} onValue=${setEmail} maxlength="254" autocomplete="off" hint="Nobody else can accept it, and who has no account gets one where the provider has verified the address. For whoever has the link unless given." />
      <${Field} label="The link works for" value=${span} onValue=${setSpan} options=${SPANS} />
    <//>
  `;
}

/** @param {{ team: any, reload: () => void }} props */
function Owning({ team, reload }) {
  const [name, setName] = useState(team.name);
  const at = { path: "/teams/{id}", params: { id: team.id } };
  const renamed = () => {
    readSession();
    reload();
  };
  const deleted = async () => {
    await readSession();
    navigate("/teams");
  };
  return html`
    <h2 class="section">The team</h2>
    <div class="buttons">
      <${Action} label="Rename" confirm="Save" call=${{ ...at, method: "PATCH", body: { name } }} ready=${name.trim() !== ""} onOpen=${() => setName(team.name)} onDone=${renamed}>
        <${Field} label="Name" value=${name} onValue=${setName} maxlength="255" />
      <//>
      <${Action} label="Delete" title="Delete the team" danger typed=${team.name} call=${{ ...at, method: "DELETE" }} onDone=${deleted}>
        <p>Nobody is in it any more. It must have no databases.</p>
      <//>
    </div>
  `;
}
