import { api } from "../../api.js";
import { Compare } from "../../components/editor.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { colouredAs } from "../../engines.js";
import { time } from "../../format.js";
import { html } from "../../html.js";
import { useList } from "../../lists.js";
import { useResource } from "../../live.js";
import { setQuery } from "../../router.js";
import { BlueprintPage } from "./frame.js";

/** @param {import("../../router.js").PageProps} props */
export default function Versions({ params: { uuid }, query }) {
  return html`<${BlueprintPage} uuid=${uuid}>
    ${(/** @type {any} */ blueprint) => html`<${Comparison} blueprint=${blueprint} query=${query} />`}
  <//>`;
}

/** @param {{ blueprint: any, query: Record<string, string> }} props */
function Comparison({ blueprint, query }) {
  const list = useList("/blueprints/{uuid}/versions", {
    params: { uuid: blueprint.uuid },
    id: (/** @type {any} */ row) => row.version,
  });
  const after = query.after ?? String(blueprint.version);
  const before = query.before ?? String(Math.max(1, Number(after) - 1));
  const options = (list.rows ?? []).map((row) => ({ value: String(row.version), label: `${row.version}, of ${time(row.created_at)}` }));
  const path = "/blueprints/{uuid}/versions/{version}";
  const both = useResource(
    (signal) => Promise.all([before, after].map((version) => api.get(path, { params: { uuid: blueprint.uuid, version }, signal }))),
    [blueprint.uuid, before, after],
  );
  return html`
    <${ErrorNote} error=${list.error ?? both.error} retry=${both.error ? both.reload : list.reload} />
    <div class="filters roomy">
      <${Field} label="Before" value=${before} options=${options} onValue=${(/** @type {string} */ value) => setQuery({ before: value, after })} />
      <${Field} label="After" value=${after} options=${options} onValue=${(/** @type {string} */ value) => setQuery({ before, after: value })} />
    </div>
    ${blueprint.version === 1 && html`<p class="quiet">There is one version. A change of the SQL makes the next.</p>`}
    ${both.loading && !both.data && html`<p class="page-loading" aria-busy="true"><span class="spinner"></span> Reading both…</p>`}
    ${both.data &&
    html`<${Compare}
      label=${`Versions ${before} and ${after}`}
      before=${both.data[0].data.sql_content}
      after=${both.data[1].data.sql_content}
      engine=${colouredAs(blueprint.metadata?.dialects)}
    />`}
  `;
}
