import { api } from "../api.js";
import { Empty } from "../components/empty.js";
import { Field } from "../components/field.js";
import { Labels } from "../components/labels.js";
import { Listing } from "../components/listing.js";
import { OnlyFor } from "../components/only-for.js";
import { Page } from "../components/page.js";
import { Status } from "../components/status.js";
import { Time } from "../components/time.js";
import { ENGINES } from "../engines.js";
import { html, useEffect, useState } from "../html.js";
import { useList } from "../lists.js";
import { useResource } from "../live.js";
import { setQuery, to } from "../router.js";
import { may, rolesFrom, session } from "../session.js";

/** @typedef {import("../api.js").Schemas["DatabaseView"]} Database */

const FILTERS = ["name", "status", "db_type", "region", "plan", "label"];
const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
const LABEL = /^[a-z0-9][a-z0-9_.-]{0,62}:.{0,255}$/;
const SOON = 3000;
const SELDOM = 10000;

/** What a list has room for; the whole sentence is in the title. */
const REASONS = {
  operator: "by an operator",
  team: "by the team",
  runtime: "hours used up",
  storage: "over its storage",
  restoring: "restoring",
  resuming: "resuming",
  frozen: "writes frozen",
};

/** @param {import("../router.js").PageProps} props */
export default function Databases({ query }) {
  const filters = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const filtered = Object.keys(filters).length > 0;
  const [every, setEvery] = useState(SELDOM);
  const list = useList("/databases", { query: filters, every });
  const { rows } = list;
  const changing = (rows ?? []).some((row) => row.status === "provisioning");
  useEffect(() => setEvery(changing ? SOON : SELDOM), [changing]);

  const create = may("member") && html`<a class="button primary" href=${to("/databases/new")}>New database</a>`;
  if (rows?.length === 0 && !filtered) return html`<${FirstVisit} create=${create} />`;
  return html`
    <${Page} title="Databases" actions=${create}>
      <${OnlyFor} what="make databases" />
      <${Filters} query=${query} filtered=${filtered} />
      <${Rows} list=${list} />
    <//>
  `;
}

/** @param {{ create: any }} props */
function FirstVisit({ create }) {
  return html`
    <${Page} title="Databases">
      <${Empty} title="No databases yet" action=${create}>
        <p>A database is ready in seconds: isolated, with its own name, user, password and limits.</p>
        ${!create && html`<p>In your teams ${rolesFrom("member")} may make one.</p>`}
      <//>
    <//>
  `;
}

/** @param {{ list: import("../lists.js").List }} props */
function Rows({ list }) {
  const several = (session.value?.teams.length ?? 0) > 1;
  /** @type {import("../components/table.js").Column<Database>[]} */
  const columns = [
    { label: "Name", cell: (row) => html`<${Name} row=${row} />` },
    { label: "Status", class: "w-status", cell: (row) => html`<${State} row=${row} />` },
    { label: "Engine", class: "w-short", wide: true, cell: (row) => row.db_type },
    { label: "Region", class: "w-medium", wide: true, cell: (row) => row.region },
    { label: "Plan", class: "w-short", wide: true, cell: (row) => row.plan },
    ...(several ? [{ label: "Team", class: "w-medium", wide: true, cell: (/** @type {Database} */ row) => row.team_name }] : []),
    { label: "Created", class: "w-time", wide: true, cell: (row) => html`<${Time} value=${row.created_at} relative />` },
  ];
  return html`
    <${Listing}
      list=${list}
      label="Databases"
      fixed
      columns=${columns}
      empty=${{ title: "No database fits", children: html`<p>There are databases, but none with these filters.</p>` }}
    />
  `;
}

/** @param {{ row: Database }} props */
function Name({ row }) {
  return html`
    <a href=${to(`/databases/${row.uuid}`)}>${row.name}</a>
    <div class="second"><span class="narrow">${row.db_type} </span><${Labels} labels=${row.labels} /></div>
  `;
}

/** @param {{ row: Database }} props */
function State({ row }) {
  const reason = row.status_reason;
  return html`
    <${Status} value=${row.status} tone=${reason?.code === "frozen" ? "warn" : undefined} />
    ${reason && html`<div class="second" title=${reason.message}>${REASONS[reason.code] ?? reason.code}</div>`}
  `;
}

/** @param {{ query: Record<string, string>, filtered: boolean }} props */
function Filters({ query, filtered }) {
  const { data } = useResource((signal) => api.get("/database_types", { signal }));
  const engines = data?.data ?? [];
  const regions = [...new Set(engines.flatMap((engine) => engine.regions.map((region) => region.code)))];
  const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string[]} */ values) => html`
    <${Field}
      label=${label}
      value=${query[name] ?? ""}
      onValue=${(/** @type {string} */ value) => setQuery({ [name]: value })}
      options=${[{ value: "", label: "All" }, ...values.map((value) => ({ value, label: value }))]}
    />
  `;
  return html`
    <search class="filters">
      <${Typed} key="name" name="name" label="Name begins with" pattern=${NAME} wrong="a to z, 0 to 9 and -" query=${query} />
      ${choice("status", "Status", ["active", "provisioning", "paused"])}
      ${choice("db_type", "Engine", Object.keys(ENGINES))}
      ${choice("region", "Region", query.region && !regions.includes(query.region) ? [...regions, query.region] : regions)}
      ${choice("plan", "Plan", ["free", "launch", "grow", "pro"])}
      <${Typed} key="label" name="label" label="Label" pattern=${LABEL} wrong="key:value" query=${query} placeholder="key:value" />
      ${filtered &&
      html`<button type="button" onClick=${() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, null])))}>
        Clear
      </button>`}
    </search>
  `;
}

/** What is typed filters a moment later, for each request costs. @param {any} props */
function Typed({ name, label, pattern, wrong, query, ...others }) {
  const [text, setText] = useState(query[name] ?? "");
  useEffect(() => setText(query[name] ?? ""), [query[name]]);
  const usable = text === "" || pattern.test(text);
  useEffect(() => {
    if (!usable || text === (query[name] ?? "")) return;
    const timer = setTimeout(() => setQuery({ [name]: text }), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<${Field}
    label=${label}
    type="search"
    value=${text}
    onValue=${(/** @type {string} */ value) => setText(name === "name" ? value.toLowerCase() : value)}
    error=${usable ? null : wrong}
    autocomplete="off"
    spellcheck=${false}
    ...${others}
  />`;
}
