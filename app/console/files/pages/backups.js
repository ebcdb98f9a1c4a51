import { Listing } from "../components/listing.js";
import { Page } from "../components/page.js";
import { html } from "../html.js";
import { useList } from "../lists.js";
import { to } from "../router.js";
import { One } from "./database/backups.js";

/** @typedef {import("../api.js").Schemas["BackupView"]} Backup */

/** Of all databases, also of those that are gone. */
export default function Backups() {
  const list = useList("/backups", { every: 5000 });
  return html`<${Page} title="Backups">
    <p>Of all databases, newest first. A backup outlives its database: a new one can be made from it.</p>
    <${Listing}
      list=${list}
      label="Backups"
      card=${(/** @type {Backup} */ one) => html`<${One} key=${one.uuid} backup=${one} onDone=${list.reload} />`}
      empty=${{
        title: "No backups yet",
        action: html`<a class="button" href=${to("/databases")}>Databases</a>`,
        children: html`<p>Open a database to take one of it, or wait for the first that its policy takes.</p>`,
      }}
    />
  <//>`;
}
