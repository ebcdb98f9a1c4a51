import { Choice } from "../components/choice.js";
import { html, useEffect, useState } from "../html.js";
import { useList } from "../lists.js";
import { useResource } from "../live.js";
import { to } from "../router.js";
import { readDatabase } from "./database/shell.js";

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * A choice among the active databases, of these engines where some are named. The only one there is is chosen.
 * @param {{ value: string, onValue: (uuid: string) => void, engines?: string[], error?: string }} props
 */
export function DatabaseField({ value, onValue, engines, error }) {
  const [find, setFind] = useState("");
  const [name, setName] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setName(find), 200);
    return () => clearTimeout(timer);
  }, [find]);
  const list = useList("/databases", { query: { status: "active", db_type: engines, name: NAME.test(name) ? name : "" } });
  const rows = list.rows ?? [];
  const elsewhere = Boolean(value && list.rows) && !rows.some((row) => row.uuid === value);
  const chosen = useResource(async (signal) => (elsewhere ? readDatabase(value, signal) : null), [elsewhere && value]);
  useEffect(() => {
    if (!value && !name && rows.length === 1) onValue(rows[0].uuid);
  }, [rows.length]);
  const empty = list.rows?.length === 0;
  const hint = empty && (name ? "None has a name that begins so." : html`There is no active database for it. <a href=${to("/databases/new")}>Make one</a>.`);
  return html`<${Choice}
    label="Database"
    list=${list}
    option=${(/** @type {any} */ row) => ({ value: row.uuid, label: `${row.name} (${row.db_type})` })}
    value=${value}
    onValue=${onValue}
    chosen=${chosen.data?.name}
    find=${find}
    onFind=${(/** @type {string} */ text) => setFind(text.toLowerCase())}
    hint=${hint}
    error=${error}
    required
  />`;
}
