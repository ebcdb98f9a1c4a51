import { useAction } from "../action.js";
import { html, useState } from "../html.js";
import { Curl } from "./curl.js";
import { Dialog } from "./dialog.js";
import { ErrorNote } from "./error-note.js";
import { Field } from "./field.js";

/**
 * A button, and the dialog in which a person confirms: what will happen, the `curl` that does the same, progress, and
 * the error if there is one. `typed` is what has to be typed first. `children` are further fields, and what will happen.
 * @param {{
 *   label: string,
 *   call: import("../action.js").Call,
 *   shown?: import("../action.js").Call,
 *   title?: string,
 *   confirm?: string,
 *   typed?: string,
 *   primary?: boolean,
 *   danger?: boolean,
 *   small?: boolean,
 *   disabled?: boolean,
 *   why?: string,
 *   ready?: boolean,
 *   onOpen?: () => void,
 *   onDone?: (answer: any) => void,
 *   result?: (answer: any) => any,
 *   children?: any,
 * }} props `shown`: what the `curl` shows in place of `call`, where that holds secrets. `confirm`: the label of the button that does it. `why`: why it is disabled. `ready`: whether the fields are
 *   filled in. `result`: what the dialog shows after it is done, such as a secret; without it the dialog closes.
 */
export function Action(props) {
  const [open, setOpen] = useState(false);
  const classes = `${props.primary ? "primary" : ""} ${props.danger ? "danger" : ""} ${props.small ? "small" : ""}`;
  const begin = () => {
    props.onOpen?.();
    setOpen(true);
  };
  return html`
    <button type="button" aria-haspopup="dialog" class=${classes} disabled=${props.disabled} title=${props.why} onClick=${begin}>
      ${props.label}
    </button>
    ${open && html`<${Confirmation} ...${props} onClose=${() => setOpen(false)} />`}
  `;
}

/** @param {any} props */
function Confirmation({ label, title = label, call, shown = call, confirm = label, typed, danger, ready = true, ...props }) {
  const { onClose, onDone, result, children } = props;
  const [text, setText] = useState("");
  const done = (/** @type {any} */ answer) => {
    onDone?.(answer);
    if (!result) onClose();
  };
  const action = useAction(call, done, undefined, { holds: true });
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (ready && (!typed || text === typed)) action.run();
  };
  if (action.answer && result) {
    return html`<${Dialog} title=${title} onClose=${onClose}>
      ${result(action.answer)}
      <div class="buttons"><button type="button" class="primary" onClick=${onClose}>Done</button></div>
    <//>`;
  }
  return html`
    <${Dialog} title=${title} onClose=${onClose} busy=${action.running}>
      <form onSubmit=${submit}>
        ${children}
        ${typed &&
        html`<${Field} label=${`Type ${typed} to confirm`} value=${text} onValue=${setText} autocomplete="off" spellcheck=${false} />`}
        <${ErrorNote} error=${action.error} />
        <${Curl} call=${shown} idempotencyKey=${action.key} />
        <div class="buttons">
          <button type="button" onClick=${onClose} disabled=${action.running}>Cancel</button>
          <button class=${danger ? "danger" : "primary"} aria-disabled=${action.running} disabled=${!ready || (typed && text !== typed)}>
            ${action.running && html`<span class="spinner"></span>`} ${confirm}
          </button>
        </div>
      </form>
    <//>
  `;
}

/**
 * The same without a dialog: a form on the page. `children` are its fields, or a function that gets the fields' errors.
 * @param {{
 *   call: import("../action.js").Call,
 *   shown?: import("../action.js").Call,
 *   submit: string,
 *   ready?: boolean,
 *   onDone?: (answer: any) => void,
 *   onAnswer?: (answer: any) => void,
 *   children?: any,
 * }} props `onDone` is called while the form is shown, `onAnswer` also when the person has left it.
 */
export function ActionForm({ call, shown = call, submit, ready = true, onDone, onAnswer, children }) {
  const action = useAction(call, onDone, onAnswer);
  const send = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (ready) action.run();
  };
  return html`
    <form class="form" onSubmit=${send}>
      ${typeof children === "function" ? children(action.error?.fields ?? {}) : children}
      <${ErrorNote} error=${action.error} />
      <div class="buttons">
        <button class="primary" aria-disabled=${action.running} disabled=${!ready}>
          ${action.running && html`<span class="spinner"></span>`} ${submit}
        </button>
      </div>
      <${Curl} call=${shown} idempotencyKey=${action.key} />
    </form>
  `;
}
