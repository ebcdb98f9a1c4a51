// Whole numbers beyond 2^53, which JavaScript's own numbers change: in the page they are texts, and in what is sent the
// digits that were typed.

/** The parts of JSON that are texts or numbers. */
const PARTS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;
const WHOLE = /^-?\d+$/;

// Browsers have it since Chromium 114, Firefox 135 and Safari 18.4. TypeScript doesn't know it yet.
const rawJSON = /** @type {{ rawJSON?: (text: string) => object }} */ (JSON).rawJSON;

/**
 * The same JSON, in which whole numbers beyond 2^53 are texts.
 * @param {string} json
 */
export const withTexts = (json) => json.replace(PARTS, (part) => (isTooLarge(part) ? `"${part}"` : part));

/** @param {string} part */
const isTooLarge = (part) => WHOLE.test(part) && !Number.isSafeInteger(Number(part));

/**
 * What is sent for a number that was typed: a number, or what `JSON.stringify` writes as all its digits. What is no
 * number, or would be changed, stays a text, which the API refuses; of the latter `problem` says what to do.
 * @param {string} text
 * @param {boolean} whole whether only whole numbers are meant
 * @returns {{ value: number | object | string, problem?: string }}
 */
export function typedNumber(text, whole) {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) return { value: text };
  if (Math.abs(value) <= Number.MAX_SAFE_INTEGER) return { value };
  const digits = digitsOf(text);
  if (digits === null) return whole ? { value: text, problem: "Write a number as large as this with all its digits." } : { value };
  if (rawJSON) return { value: rawJSON(digits) };
  return {
    value: text,
    problem: `This browser would change this number: it sends whole ones up to ${Number.MAX_SAFE_INTEGER} as they are. A newer browser sends it.`,
  };
}

/** Of a whole number; null for what is written as another one, such as 1e300. @param {string} text */
function digitsOf(text) {
  try {
    return String(BigInt(text));
  } catch {
    return null;
  }
}
