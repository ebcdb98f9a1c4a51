import { api } from "../../api.js";
import { Chart } from "../../components/chart.js";
import { ErrorNote } from "../../components/error-note.js";
import { Field } from "../../components/field.js";
import { Time } from "../../components/time.js";
import { bytes, number, seconds, words } from "../../format.js";
import { html } from "../../html.js";
import { useResource } from "../../live.js";
import { query, setQuery } from "../../router.js";
import { DatabasePage } from "./shell.js";

/** @typedef {import("./shell.js").Database} Database */
/** @typedef {{ name: string, points: [string, number][] }} Series */

const SPANS = [
  { value: "3600", label: "The last hour" },
  { value: "86400", label: "The last day" },
  { value: "604800", label: "The last week" },
  { value: "5184000", label: "The last 60 days" },
];
const TITLES = { storage_bytes: "Storage", connections: "Connections", transactions: "Transactions" };

/** @param {{ params: { uuid: string } }} props */
export default function Charts({ params: { uuid } }) {
  return html`<${DatabasePage} uuid=${uuid} part="/charts">
    ${() => html`<${Drawn} uuid=${uuid} />`}
  <//>`;
}

/** @param {{ uuid: string }} props */
function Drawn({ uuid }) {
  const span = SPANS.find((one) => one.value === query().span)?.value ?? "86400";
  const { data, error, reload } = useResource(
    async (signal) => {
      const now = Date.now() / 1000;
      const answer = await api.get("/databases/{uuid}/metrics", {
        params: { uuid },
        query: {
          names: Object.keys(TITLES).join(","),
          from: new Date((now - Number(span)) * 1000).toISOString(),
        },
        signal,
      });
      return { ...answer, span: /** @type {[number, number]} */ ([now - Number(span), now]) };
    },
    [uuid, span],
    { every: 30_000 },
  );
  const metrics = data?.data;
  return html`
    <div class="filters">
      <${Field} label="Time" value=${span} onValue=${(/** @type {string} */ value) => setQuery({ span: value })} options=${SPANS} />
    </div>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!metrics && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the metrics…</p>`}
    ${metrics && html`
      <p class="quiet">
        A point is for ${seconds(metrics.step)}.
        ${metrics.stale_seconds === null ? " Not measured yet: the first measurement comes within a minute or two." : ` Measured ${seconds(metrics.stale_seconds)} ago.`}
        ${metrics.uncounted.length > 0 && ` The server doesn't count: ${metrics.uncounted.map(words).join(", ")}.`}
      </p>
      ${metrics.series.map((/** @type {any} */ one) => html`<${Line} key=${`${one.name}-${span}`} series=${one} step=${metrics.step} span=${data.span} />`)}
      <${Gaps} gaps=${metrics.gaps} />
    `}
  `;
}

/** @param {{ series: Series, step: number, span: [number, number] }} props */
function Line({ series, step, span }) {
  const title = TITLES[/** @type {keyof typeof TITLES} */ (series.name)];
  if (series.points.length === 0) return html`<p>${title}: <span class="quiet">no measurements in this time</span></p>`;
  const [times, values] = withGaps(series.points, step);
  const inBytes = series.name === "storage_bytes";
  const write = inBytes ? bytes : (/** @type {number} */ value) => number(value);
  const unit = series.name === "transactions" ? `${title} in ${seconds(step)}` : title;
  return html`<${Chart} title=${unit} times=${times} series=${[{ label: title, values }]} write=${write} inBytes=${inBytes} span=${span} />`;
}

/**
 * Times in seconds and values, with one null where points are missing, so that no line is drawn over a gap.
 * @param {[string, number][]} points @param {number} step
 * @returns {[number[], (number | null)[]]}
 */
export function withGaps(points, step) {
  /** @type {number[]} */ const times = [];
  /** @type {(number | null)[]} */ const values = [];
  for (const [at, value] of points) {
    const time = Date.parse(at) / 1000;
    const last = times.at(-1);
    if (last !== undefined && time - last > 1.5 * step) {
      times.push(last + step);
      values.push(null);
    }
    times.push(time);
    values.push(value);
  }
  return [times, values];
}

/** @param {{ gaps: [string, string][] }} props */
function Gaps({ gaps }) {
  if (gaps.length === 0) return null;
  return html`
    <h2>Gaps</h2>
    <p>Nobody knows what happened in these times: before the first measurement, while the database was paused, or while its host or the measuring was away.</p>
    <ul>
      ${gaps.map(([from, to]) => html`<li key=${from}><${Time} value=${from} /> to <${Time} value=${to} /></li>`)}
    </ul>
  `;
}
