import { Empty } from "../components/empty.js";
import { ErrorNote } from "../components/error-note.js";
import { Page } from "../components/page.js";
import { html } from "../html.js";
import { useList } from "../lists.js";
import { One } from "./database/backups.js";

/** @typedef {import("../api.js").Schemas["BackupView"]} Backup */

/** Of all databases, also of those that are gone. */
export default function Backups() {
  const { rows, error, reload, complete, more } = useList("/backups", { every: 5000 });
  const all = /** @type {Backup[]} */ (rows ?? []);
  return html`<${Page} title="Backups">
    <p>Of all databases, newest first. A backup outlives its database: a new one can be made from it.</p>
    <${ErrorNote} error=${error} retry=${reload} />
    ${!rows && !error && html`<p aria-busy="true"><span class="spinner"></span> Reading the backups…</p>`}
    ${rows && all.length === 0 && html`<${Empty} title="No backups yet"><p>Open a database to take one of it.</p><//>`}
    ${all.map((one) => html`<${One} key=${one.uuid} backup=${one} onDone=${reload} />`)}
    ${rows && !complete && html`<button type="button" onClick=${more}>Show more</button>`}
  <//>`;
}
