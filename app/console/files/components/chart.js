import { number, time, utc } from "../format.js";
import { html, useEffect, useRef } from "../html.js";
import { Time } from "./time.js";
import uPlot from "../vendor/uplot.js";

const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);
const TENS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();

/** As a canvas takes it: a custom property itself may be `light-dark(…)`. @param {HTMLElement} box @param {string} name */
function colour(box, name) {
  box.style.setProperty("color", `var(${name})`);
  const found = getComputedStyle(box).color;
  box.style.removeProperty("color");
  return found;
}

/**
 * Lines over time, and the same numbers in a table beneath. Load this module on pages with charts alone.
 * @param {{
 *   title: string,
 *   times: number[],
 *   series: { label: string, values: (number | null)[], colour?: string }[],
 *   write?: (value: number) => string,
 *   inBytes?: boolean,
 *   height?: number,
 *   span?: [number, number],
 * }} props `times` in seconds since 1970. `write`: a value with its unit. `colour`: a custom property, `--accent` unless
 *   given. `inBytes`: the axis goes by powers of two, and by whole numbers otherwise. `span`: from when to when, also where there is nothing to draw.
 */
export function Chart({ title, times, series, write = number, inBytes = false, height = 180, span }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const chart = useRef(/** @type {any} */ (null));
  const data = /** @type {any} */ ([times, ...series.map((one) => one.values)]);
  const latest = useRef({ data, span });
  latest.current = { data, span };

  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const draw = () => {
      chart.current?.destroy();
      const axis = { stroke: colour(box, "--quiet"), grid: { stroke: colour(box, "--line"), width: 1 }, ticks: { show: false } };
      const options = {
        width: box.clientWidth,
        height,
        cursor: { drag: { x: false, y: false } },
        scales: { x: { range: (/** @type {any} */ _, /** @type {number} */ min, /** @type {number} */ max) => latest.current.span ?? [min, max] }, y: { range: { min: { pad: 0, soft: 0, mode: 1 }, max: { pad: 0.1, soft: 1, mode: 2 } } } },
        axes: [axis, { ...axis, size: 72, incrs: inBytes ? POWERS : TENS, values: (/** @type {any} */ _, /** @type {number[]} */ all) => all.map(write) }],
        series: [
          { value: (/** @type {any} */ _, /** @type {number | null} */ at) => (at == null ? "–" : `${time(new Date(at * 1000))} (${utc(new Date(at * 1000))})`) },
          ...series.map((one, index) => ({
            label: one.label,
            stroke: colour(box, one.colour ?? (index ? "--accent-2" : "--accent")),
            width: 2,
            dash: index ? [6, 3] : undefined,
            points: { show: times.length < 3 || undefined },
            value: (/** @type {any} */ _, /** @type {number | null} */ value) => (value == null ? "–" : write(value)),
          })),
        ],
      };
      chart.current = new uPlot(/** @type {any} */ (options), latest.current.data, box);
    };
    draw();
    const sized = new ResizeObserver(() => chart.current?.setSize({ width: box.clientWidth, height }));
    sized.observe(box);
    // The canvas has its colours from the theme.
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      sized.disconnect();
      themed.disconnect();
      dark.removeEventListener("change", draw);
      chart.current?.destroy();
      chart.current = null;
    };
  }, [series.map((one) => one.label).join("\n"), height]);

  useEffect(() => {
    chart.current?.setData(data);
  }, [JSON.stringify([data, span])]);

  return html`
    <figure class="chart">
      <figcaption>${title}</figcaption>
      <div class="chart-place" ref=${place} role="img" aria-label=${`${title}: the numbers are in the table beneath`}></div>
      <details>
        <summary>${title} as a table</summary>
        <div class="table-scroll" tabindex="0" role="region" aria-label=${`${title} as a table`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                ${series.map((one) => html`<th key=${one.label} scope="col" class="number">${one.label}</th>`)}
              </tr>
            </thead>
            <tbody>
              ${times.map(
                (at, index) => html`<tr key=${at}>
                  <td><${Time} value=${new Date(at * 1000).toISOString()} /></td>
                  ${series.map((one) => html`<td key=${one.label} class="number">
                    ${one.values[index] == null ? "–" : write(/** @type {number} */ (one.values[index]))}
                  </td>`)}
                </tr>`,
              )}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  `;
}
