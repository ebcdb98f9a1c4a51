import { Action } from "../../components/action.js";
import { Listing } from "../../components/listing.js";
import { Page } from "../../components/page.js";
import { Time } from "../../components/time.js";
import { html, useState } from "../../html.js";
import { useList } from "../../lists.js";
import { forOperators } from "../../session.js";

/** @typedef {import("../../api.js").Schemas["FindingView"]} Finding */

/** @type {import("../../components/table.js").Column<Finding>[]} */
const columns = [
  { label: "Rule", class: "nowrap", wide: true, cell: (one) => html`<code>${one.rule}</code>` },
  {
    label: "What",
    class: "main",
    cell: (one) => html`<span class="narrow"><code>${one.rule}</code><br /></span>${one.database ? html`<strong>${one.database}</strong> <span class="quiet">of ${one.team ?? "no team"}</span>` : html`<code>${one.subject}</code>`} ${one.detail}`,
  },
  { label: "Host", class: "number", wide: true, cell: (one) => one.host_id ?? "none" },
  { label: "Since", cell: (one) => html`<${Time} value=${one.first_seen_at} relative />` },
  { label: "Seen", class: "roomy", wide: true, cell: (one) => html`<${Time} value=${one.last_seen_at} relative />` },
];

export default function Findings() {
  const list = useList("/operator/findings", { every: 5000 });
  const [started, setStarted] = useState(/** @type {{ at: string, temporal_url: string | null } | null} */ (null));
  const begun = (/** @type {any} */ answer) => {
    setStarted({ at: new Date().toISOString(), temporal_url: answer.data.temporal_url });
    list.reload();
  };
  const check = html`<${Action} label="Check now" confirm="Run the check" call=${{ method: "POST", path: "/operator/checks" }} onDone=${begun} ...${forOperators()}>
    <p>The workers compare our records with every host, and mend what they can. What they find shows here.</p>
  <//>`;
  return html`<${Page} title="Findings" actions=${check}>
    <p>What the scheduled consistency check has found, and what is not over.</p>
    ${started && html`<p role="status">
      A check was started <${Time} value=${started.at} relative />. What it finds shows here as it ends.${" "}
      ${/^https?:/.test(started.temporal_url ?? "") && html`<a href=${started.temporal_url} target="_blank" rel="noreferrer">Its runs in Temporal</a>`}
    </p>`}
    <${Listing} list=${list} label="Findings" columns=${columns} empty=${{ title: "Nothing was found", children: html`<p>Our records and the hosts agree, as far as the last check saw.</p>` }} />
  <//>`;
}
