// Times and numbers as a reader expects them, and times as the API does.

const UNITS = ["B", "KB", "MB", "GB", "TB"];
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

const wholeTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** @param {number} value @param {number} [digits] at most after the point */
export function number(value, digits = 1) {
  return new Intl.NumberFormat(undefined, { maximumFractionDigits: digits }).format(value);
}

/** With the unit that leaves one to three digits before the point. Units are of 1024. @param {number} value */
export function bytes(value) {
  let power = 0;
  while (Math.abs(value) >= 1024 && power < UNITS.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${number(value)} ${UNITS[power]}`;
}

/** @param {number} value in seconds */
export function seconds(value) {
  if (value === 0) return "0 s";
  if (value < 1) return `${number(value * 1000, 0)} ms`;
  if (value < minute) return `${number(value)} s`;
  if (value < hour) return `${Math.floor(value / minute)} min${value % minute >= 1 ? ` ${Math.floor(value % minute)} s` : ""}`;
  if (value < 2 * day) return `${Math.floor(value / hour)} h ${Math.floor((value % hour) / minute)} min`;
  return `${number(value / day)} days`;
}

/** In the reader's zone. @param {string | Date} value */
export function time(value) {
  return wholeTime.format(new Date(value));
}

/** For a hover. @param {string | Date} value */
export function utc(value) {
  return `${new Date(value).toISOString().replace("T", " ").slice(0, 19)} UTC`;
}

/** "3 minutes ago", "in 2 days". @param {string | Date} value */
export function ago(value) {
  const away = (new Date(value).getTime() - Date.now()) / 1000;
  const size = Math.abs(away);
  if (size < minute) return relative.format(Math.round(away), "second");
  if (size < hour) return relative.format(Math.round(away / minute), "minute");
  if (size < day) return relative.format(Math.round(away / hour), "hour");
  return relative.format(Math.round(away / day), "day");
}

/**
 * What is sent for what a field for a date and a time holds: the moment, in UTC; null for none. What is no date to
 * JavaScript, such as one in the year 20300, stays a text, which the API refuses.
 * @param {string | undefined} text
 */
export function typedMoment(text) {
  if (!text) return null;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? text : at.toISOString();
}

/** "2 databases", "1 database". @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many = `${one}s`) {
  return `${number(count, 0)} ${count === 1 ? one : many}`;
}

/** "apply_blueprint" as people say it. @param {string} word */
export const words = (word) => word.replaceAll("_", " ");
