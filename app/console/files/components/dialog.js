import { html, useId, useLayoutEffect, useRef } from "../html.js";

/**
 * A modal dialog; Escape closes it, and the focus goes back to where it was. Render it while it is open.
 * @param {{ title: string, onClose: () => void, busy?: boolean, children?: any }} props
 */
export function Dialog({ title, onClose, busy = false, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  // A key may be pressed before the next picture: the focus isn't taken from whatever that has gone on to.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const element = dialog.current;
    element?.showModal();
    return () => {
      // What is behind a dialog takes no focus while that is open.
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (!busy) onClose();
  };
  // A browser closes it by a second Escape whatever `cancel` says: what was begun in it still has something to show.
  const closed = () => {
    if (!dialog.current?.isConnected) return;
    if (busy) dialog.current.showModal();
    else onClose();
  };
  return html`
    <dialog ref=${dialog} aria-labelledby=${id} onCancel=${cancel} onClose=${closed}>
      <h2 id=${id}>${title}</h2>
      ${children}
    </dialog>
  `;
}
