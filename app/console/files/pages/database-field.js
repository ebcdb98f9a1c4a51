import { api } from "../api.js";
import { Field } from "../components/field.js";
import { html, useEffect } from "../html.js";
import { resource } from "../live.js";
import { to } from "../router.js";

/**
 * A choice among the active databases, of these engines where some are named. The only one there is is chosen.
 * @param {{ value: string, onValue: (uuid: string) => void, engines?: string[], error?: string }} props
 */
export function DatabaseField({ value, onValue, engines, error }) {
  const found = resource((signal) => api.get("/databases", { query: { status: "active", db_type: engines, limit: 100 }, signal }), [
    engines?.join(),
  ]);
  const rows = found.data?.data ?? [];
  useEffect(() => {
    if (!value && rows.length === 1) onValue(rows[0].uuid);
  }, [rows.length]);
  const hint =
    found.data && rows.length === 0
      ? html`There is no active database for it. <a href=${to("/databases/new")}>Make one</a>.`
      : found.data?.has_more && "The newest 100. A database's own page leads here with any other.";
  const known = !value || rows.some((/** @type {any} */ row) => row.uuid === value);
  return html`<${Field}
    label="Database"
    value=${value}
    onValue=${onValue}
    error=${error ?? found.error?.message}
    hint=${hint}
    required
    options=${[
      { value: "", label: found.loading && !found.data ? "Loading…" : "Choose" },
      ...(known ? [] : [{ value, label: value }]),
      ...rows.map((/** @type {any} */ row) => ({ value: row.uuid, label: `${row.name} (${row.db_type})` })),
    ]}
  />`;
}
