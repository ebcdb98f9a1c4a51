// Questions in natural language: the SQL and its class first, rows when a person says so.
import { useAction } from "../action.js";
import { api } from "../api.js";
import { Action } from "../components/action.js";
import { Copy } from "../components/copy.js";
import { Curl } from "../components/curl.js";
import { ErrorNote } from "../components/error-note.js";
import { Field } from "../components/field.js";
import { Listing } from "../components/listing.js";
import { Page } from "../components/page.js";
import { Status } from "../components/status.js";
import { useTick } from "../components/steps.js";
import { Table } from "../components/table.js";
import { Time } from "../components/time.js";
import { counted, number, time } from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { useList } from "../lists.js";
import { useResource } from "../live.js";
import { may, rolesFrom } from "../session.js";
import { DatabaseField } from "./database-field.js";
import { readDatabase } from "./database/shell.js";

const MOST = 2000;
const CUT = 120;
const CLASSES = /** @type {Record<string, string>} */ ({
  select: "reads rows, changes nothing",
  write: "changes rows",
  ddl_batch: "changes the schema",
});
const NUMBERS = /^(tiny|small|medium|big)?int(eger)?\d?\b|^(numeric|decimal|float|double|real|year)/i;
const SHORT = /** @type {Record<string, string>} */ ({ select: "read", write: "rows", ddl_batch: "schema" });

/** @param {import("../router.js").PageProps} props */
export default function Questions({ query }) {
  const [database, setDatabase] = useState(query.database ?? "");
  const [text, setText] = useState("");
  const [preview, setPreview] = useState(/** @type {any} */ (null));
  const history = useList("/query_executions", { query: { database_uuid: database } });
  const allowance = useResource(
    async (signal) => (database ? api.get("/databases/{uuid}/query_allowance", { params: { uuid: database }, signal }) : null),
    [database],
  );
  const again = () => {
    history.reload();
    allowance.reload();
  };
  const call = { method: "POST", path: "/query_executions", body: { database_uuid: database, query: text, execute: false }, keyless: true };
  const asking = useAction(/** @type {any} */ (call), (answer) => {
    setPreview({ ...answer, database });
    again();
  });
  useEffect(() => {
    if (asking.error) again();
  }, [asking.error]);
  // The SQL that is shown runs where it was asked for: it goes when another database is chosen.
  const choose = (/** @type {string} */ uuid) => {
    if (uuid !== database) setPreview(null);
    setDatabase(uuid);
  };
  const field = useRef(/** @type {HTMLFormElement | null} */ (null));
  const ready = database !== "" && text.trim() !== "" && !asking.running;
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!ready) return;
    setPreview(null);
    asking.run();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
  };
  if (!may("member")) {
    return html`<${Page} title="Questions"><p>Only ${rolesFrom("member")} of a team ask questions about its databases.</p><//>`;
  }
  return html`<${Page} title="Questions">
    <form class="form" ref=${field} onSubmit=${submit}>
      <${DatabaseField} value=${database} onValue=${choose} />
      <${Field}
        label="Question or order"
        rows="3"
        value=${text}
        onValue=${setText}
        onKeyDown=${onKeyDown}
        maxlength=${MOST}
        hint=${`${number(MOST - text.length, 0)} characters left. Ctrl and Enter asks.`}
        required
      />
      <div class="buttons"><button class="primary" disabled=${!ready}>Show the SQL</button></div>
      <${Allowance} of=${allowance} />
      ${asking.running && html`<${Waiting} text="Translating" />`}
      <${ErrorNote} error=${asking.error} />
      ${asking.error?.details?.sql && html`<${Sql} label="The SQL that was refused" text=${asking.error.details.sql} />`}
      <${Curl} call=${call} idempotencyKey=${asking.key} />
    </form>
    ${preview?.database === database && html`<${Preview} key=${preview.query_id} preview=${preview} onRun=${again} />`}
    <h2>Your questions</h2>
    <${History} list=${history} onAsk=${(/** @type {any} */ one) => {
      setText(one.query);
      if (one.database_uuid) choose(one.database_uuid);
      field.current?.querySelector("textarea")?.focus();
    }} />
  <//>`;
}

/** @param {{ of: any }} props */
function Allowance({ of: { data, error } }) {
  const one = data?.data;
  if (error) return html`<${ErrorNote} error=${error} />`;
  if (!one) return null;
  if (one.per_day === null) return html`<p class="quiet">This team may ask any number of questions; ${number(one.used)} today.</p>`;
  return html`<p class="quiet">
    ${number(one.remaining)} of ${counted(one.per_day, "question")} left today. All are back at <${Time} value=${one.resets_at} />.
  </p>`;
}

/** @param {{ text: string }} props */
function Waiting({ text }) {
  const since = useRef(Date.now());
  useTick(true);
  return html`<p class="quiet" aria-busy="true">
    <span class="spinner"></span> ${text}, for ${Math.round((Date.now() - since.current) / 1000)} s
  </p>`;
}

/** @param {{ label: string, text: string }} props */
function Sql({ label, text }) {
  return html`<pre class="wrapped" tabindex="0" role="region" aria-label=${label}>${text}</pre>`;
}

/**
 * The SQL, its class, and the rows once it was run.
 * @param {{ preview: any, onRun: () => void }} props `preview`: the answer, with the uuid of the database that was asked.
 */
function Preview({ preview, onRun }) {
  const kind = preview.result.type;
  const call = { method: "POST", path: "/query_executions/{id}/runs", params: { id: preview.query_id }, keyless: true, exact: true };
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const done = (/** @type {any} */ given) => {
    setAnswer(given);
    onRun();
  };
  const run = useAction(/** @type {any} */ (call), done);
  const reads = kind === "select";
  const asked = useResource((signal) => readDatabase(preview.database, signal), [preview.database]);
  const name = asked.data?.name ?? preview.database;
  return html`
    <section class="panel" aria-label="Answer">
      <h2>The SQL for ${name}</h2>
      <${Sql} label="SQL" text=${preview.sql} />
      <p>
        <${Status} value=${kind} tone=${reads ? "good" : "warn"} label=${CLASSES[kind] ?? kind} />${" "}
        <${Copy} text=${preview.sql} what="the SQL" />
      </p>
      ${!answer &&
      html`<div class="buttons">
          ${reads
            ? html`<button type="button" class="primary" disabled=${run.running} onClick=${run.run}>Run it</button>`
            : html`<${Action} label="Run it" title="Run this SQL" confirm="Run it" danger call=${call} onDone=${done}>
                <${Sql} label="SQL to run" text=${preview.sql} />
                <p>It ${CLASSES[kind]} of ${name}, and can't be taken back.</p>
              <//>`}
        </div>
        ${run.running && html`<${Waiting} text="Running" />`}
        <${ErrorNote} error=${run.error} />
        ${reads && html`<${Curl} call=${call} idempotencyKey=${run.key} />`}`}
      ${answer && html`<${Result} answer=${answer} />`}
    </section>
  `;
}

/** @param {{ answer: any }} props */
function Result({ answer: { result, query_id } }) {
  if (result.type === "write") return html`<p role="status">${counted(result.affectedRows, "row")} changed.</p>`;
  if (result.type === "ddl_batch") return html`<p role="status">${counted(result.statementsExecuted, "statement")} executed.</p>`;
  const columns = result.columns.map((/** @type {any} */ column) => ({
    label: column.name,
    note: column.type,
    class: NUMBERS.test(column.type) ? "number" : undefined,
    cell: (/** @type {any} */ row) => html`<${Value} value=${row.values[column.name]} name=${column.name} />`,
  }));
  return html`
    <p role="status">
      ${counted(result.rowCount, "row")}${result.truncated ? `, cut off: there are more than these. At most ${number(result.maxRows)} are shown.` : "."}
      <span class="quiet"> Query ${query_id}.</span>
    </p>
    ${result.rowCount > 0 &&
    html`<${Table}
      label="Rows"
      rows=${result.rows.map((/** @type {any} */ values, /** @type {number} */ at) => ({ values, at }))}
      id=${(/** @type {any} */ row) => row.at}
      columns=${columns}
      scrolls
    />`}
  `;
}

/** A value as text; a long one is cut, and shown in whole when asked. @param {{ value: any, name: string }} props */
function Value({ value, name }) {
  const [whole, setWhole] = useState(false);
  if (value === null || value === undefined) return html`<span class="quiet">NULL</span>`;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length <= CUT) return html`<span class="cell">${text}</span>`;
  return html`<span class="cell">
    ${whole ? text : `${text.slice(0, CUT)}…`}${" "}
    <button type="button" class="small" aria-expanded=${whole} onClick=${() => setWhole(!whole)}>
      ${whole ? "Less" : `All ${number(text.length)} characters`}<span class="visually-hidden"> of ${name}</span>
    </button>
  </span>`;
}

/** @param {{ list: import("../lists.js").List, onAsk: (one: any) => void }} props */
function History({ list, onAsk }) {
  // Of SQL that was shown and then run there are two lines: that of the run tells more.
  const rows = list.rows?.filter((row) => row.outcome !== "executed");
  return html`
    <${Listing}
      list=${{ ...list, rows }}
      label="Your questions"
      empty=${{
        title: "None yet",
        children: html`<p>Choose a database and ask, for example: how many rows does each table have?</p>`,
      }}
      columns=${[
        { label: "Question", class: "main", cell: (/** @type {any} */ row) => html`<${Value} value=${row.query} name="the question" /> <div class="narrow"><${Outcome} row=${row} /></div>` },
        { label: "Outcome", wide: true, cell: (/** @type {any} */ row) => html`<${Outcome} row=${row} />` },
        { label: "Class", wide: true, cell: (/** @type {any} */ row) => SHORT[row.type] ?? "" },
        { label: "Rows", wide: true, class: "number", cell: (/** @type {any} */ row) => row.row_count },
        { label: "Asked", wide: true, cell: (/** @type {any} */ row) => html`<${Time} value=${row.created_at} relative />` },
        {
          label: "Again",
          cell: (/** @type {any} */ row) => html`<button type="button" class="small" onClick=${() => onAsk(row)}>
            Ask again<span class="visually-hidden">, ${time(row.created_at)}</span>
          </button>`,
        },
      ]}
    />
  `;
}

/** @param {{ row: any }} props */
const Outcome = ({ row }) => html`<${Status} value=${row.outcome ?? "running"} tone=${TONES[row.outcome]} />`;

const TONES = /** @type {Record<string, any>} */ ({ refused: "warn", unknown: "warn", translated: "idle" });
