import { api } from "../api.js";
import { Empty } from "../components/empty.js";
import { ErrorNote } from "../components/error-note.js";
import { Page } from "../components/page.js";
import { html, useState } from "../html.js";
import { resource } from "../live.js";
import { One } from "./database/backups.js";

/** @typedef {import("../api.js").Schemas["BackupView"]} Backup */

/** Of all databases, also of those that are gone. */
export default function Backups() {
  const [limit, setLimit] = useState(25);
  const { data, error, reload } = resource((signal) => api.get("/backups", { query: { limit }, signal }), [limit], { every: 5000 });
  const all = /** @type {Backup[]} */ (data?.data ?? []);
  return html`<${Page} title="Backups">
    <p>Of all databases, newest first. A backup outlives its database: a new one can be made from it.</p>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!data && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the backups…</p>`}
    ${data && all.length === 0 && html`<${Empty} title="No backups yet"><p>Open a database to take one of it.</p><//>`}
    ${all.map((one) => html`<${One} key=${one.uuid} backup=${one} onDone=${reload} />`)}
    ${data?.has_more &&
    (limit < 100
      ? html`<button type="button" onClick=${() => setLimit(100)}>Show more</button>`
      : html`<p class="quiet">The 100 newest are shown; the API lists all.</p>`)}
  <//>`;
}
