// What is wrong with SQL, as it is written.
import { api } from "../../api.js";
import { ErrorNote } from "../../components/error-note.js";
import { Status } from "../../components/status.js";
import { ENGINES } from "../../engines.js";
import { counted } from "../../format.js";
import { html, useEffect, useState } from "../../html.js";

const PAUSE = 500;
const PLACE = /\blines? (\d+)(?:, column (\d+))?/;

/**
 * A hook: the API's verdict on the SQL, asked for when the writing pauses. An answer to what is no longer there is left.
 * @param {string} sql
 * @param {Record<string, any> | null} variables
 */
export function useValidation(sql, variables) {
  const [state, setState] = useState(/** @type {any} */ ({ busy: false, answer: null, error: null, marks: [] }));
  const text = JSON.stringify(variables);
  useEffect(() => {
    if (!sql.trim()) {
      setState({ busy: false, answer: null, error: null, marks: [] });
      return;
    }
    const stop = new AbortController();
    const ask = async () => {
      setState((/** @type {any} */ was) => ({ ...was, busy: true }));
      // Undeclared placeholders are no errors yet while nothing is declared.
      const body = { sql_content: sql, ...(variables && { variables }) };
      try {
        const { data } = await api.send("POST", "/blueprint_validations", body, { signal: stop.signal });
        setState({ busy: false, answer: data, error: null, marks: [...marks(data.errors, "error"), ...marks(data.warnings, "warning")] });
      } catch (error) {
        if (!stop.signal.aborted) setState({ busy: false, answer: null, error, marks: [] });
      }
    };
    const timer = setTimeout(ask, PAUSE);
    return () => {
      clearTimeout(timer);
      stop.abort(new DOMException("written on", "AbortError"));
    };
  }, [sql, text]);
  return state;
}

/** @param {string[]} messages @param {"error" | "warning"} severity */
function marks(messages, severity) {
  return messages.flatMap((message) => {
    const found = PLACE.exec(message);
    return found ? [{ line: Number(found[1]), column: Number(found[2] ?? 1), severity, message }] : [];
  });
}

/**
 * The verdict in words. A click on an error goes to its place.
 * @param {{ validation: any, onGo: (mark: any) => void }} props
 */
export function Verdict({ validation: { busy, answer, error, marks }, onGo }) {
  if (error) return html`<${ErrorNote} error=${error} />`;
  return html`
    <div class="verdict" role="status" aria-busy=${busy}>
      <p>${summary()}</p>
      ${answer && answer.errors.length > 0 && list("Errors", answer.errors)}
      ${answer && answer.warnings.length > 0 && list("Warnings", answer.warnings)}
    </div>
  `;

  function summary() {
    if (busy) return html`<span class="quiet"><span class="spinner"></span> Reading the SQL…</span>`;
    if (!answer) return html`<span class="quiet">The SQL is read as you write.</span>`;
    if (!answer.valid) return html`<${Status} value="failed" label=${counted(answer.errors.length, "error")} />`;
    const engines = answer.manifest.dialects.map((/** @type {import("../../engines.js").Engine} */ one) => ENGINES[one]).join(" and for ");
    return html`<${Status} value="completed" label=${`${counted(answer.statement_count, "statement")} for ${engines}`} />`;
  }

  /** @param {string} label @param {string[]} messages */
  function list(label, messages) {
    return html`<ul aria-label=${label}>
      ${messages.map((message) => {
        const mark = marks.find((/** @type {any} */ one) => one.message === message);
        return html`<li key=${message}>
          ${mark ? html`<button type="button" class="link" onClick=${() => onGo(mark)}>${message}</button>` : message}
        </li>`;
      })}
    </ul>`;
  }
}
