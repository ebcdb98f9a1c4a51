import { words } from "../format.js";
import { html } from "../html.js";

/** @type {Record<string, "good" | "busy" | "warn" | "bad" | "idle">} */
const TONES = {
  active: "good",
  succeeded: "good",
  completed: "good",
  verified: "good",
  delivered: "good",
  proven: "good",
  provisioning: "busy",
  running: "busy",
  pending: "busy",
  creating: "busy",
  removing: "busy",
  retrying: "busy",
  waiting: "warn",
  paused: "warn",
  expired: "idle",
  skipped: "idle",
  cancelled: "idle",
  deleted: "idle",
  revoked: "idle",
  failed: "bad",
};

/**
 * A status: its word, and a mark whose form says the same as its colour. `tone` where the word alone doesn't give it.
 * @param {{ value: string, tone?: "good" | "busy" | "warn" | "bad" | "idle", label?: string }} props
 */
export function Status({ value, tone, label }) {
  return html`<span class=${`status ${tone ?? TONES[value] ?? "idle"}`}>${label ?? words(value)}</span>`;
}
