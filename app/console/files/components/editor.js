// The SQL editor, and two versions side by side. Load this module on pages with an editor alone, for it brings
// CodeMirror. It lives in a shadow root: there its styles are an adopted style sheet, which the policy allows.
import { USUAL_ENGINE } from "../engines.js";
import { html, useEffect, useLayoutEffect, useRef } from "../html.js";
import {
  Compartment,
  EditorState,
  EditorView,
  HighlightStyle,
  MergeView,
  MySQL,
  PostgreSQL,
  bracketMatching,
  defaultKeymap,
  drawSelection,
  highlightActiveLine,
  history,
  historyKeymap,
  keymap,
  lineNumbers,
  lintGutter,
  lintKeymap,
  setDiagnostics,
  sql,
  syntaxHighlighting,
  tags,
  unifiedMergeView,
} from "../vendor/editor.js";

/** @typedef {{ line: number, column: number, severity: "error" | "warning", message: string }} Mark */

const theme = EditorView.theme({
  "&": { color: "var(--text)", background: "var(--ground)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace', maxHeight: "32rem" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { background: "var(--raised)", color: "var(--quiet)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { background: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "color-mix(in srgb, var(--accent) 25%, transparent)",
  },
  ".cm-tooltip": { background: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
  // The library's own are images in its style sheet, which the policy doesn't allow.
  ".cm-lint-marker": { width: "0.75em", height: "0.75em", margin: "0.25em 0" },
  ".cm-lint-marker-error": { content: "none", background: "var(--bad)" },
  ".cm-lint-marker-warning": { content: "none", background: "var(--warn)", borderRadius: "50%" },
  ".cm-lintPoint::after": { borderBottomColor: "var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--warn)" },
  ".cm-changedLine, .cm-insertedLine, .cm-deletedChunk": {
    background: "color-mix(in srgb, var(--accent) 12%, transparent)",
  },
  ".cm-changedText, .cm-deletedText": {
    background: "color-mix(in srgb, var(--accent) 25%, transparent)",
    textDecoration: "none",
  },
  // The system's own colours leave no tint: what it says is said by lines.
  "@media (forced-colors: active)": {
    ".cm-lint-marker-error, .cm-lint-marker-warning": { background: "CanvasText" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
      background: "transparent",
      border: "1px solid Highlight",
    },
    ".cm-changedLine, .cm-insertedLine": { borderLeft: "3px double" },
    ".cm-deletedChunk": { borderLeft: "3px dashed" },
    ".cm-changedText": { textDecoration: "underline" },
    ".cm-deletedText": { textDecoration: "line-through" },
  },
});
const room = EditorView.theme({ ".cm-content, .cm-gutter": { minHeight: "14rem" } });
const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--accent-2)" },
    { tag: [tags.comment], color: "var(--quiet)", fontStyle: "italic" },
    { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--busy)" },
  ]),
);

/** Text over a selection. Left to Chromium, the lines that it joins get style attributes, which the policy refuses. */
const overwriting = EditorView.domEventHandlers({
  beforeinput(/** @type {InputEvent} */ event, /** @type {any} */ view) {
    if (event.inputType !== "insertText" || event.isComposing || event.data === null) return false;
    if (view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

/** @type {Record<import("../engines.js").Engine, any>} */
const DIALECTS = { postgres: PostgreSQL, mysql: MySQL };

/** @param {import("../engines.js").Engine} [engine] */
const language = (engine = USUAL_ENGINE) => sql({ dialect: DIALECTS[engine], upperCaseKeywords: true });

/** @param {string} label @param {boolean} readOnly */
const basics = (label, readOnly) => [
  lineNumbers(),
  bracketMatching(),
  theme,
  colours,
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ "aria-label": label, ...(readOnly && { tabindex: "0", "aria-readonly": "true" }) }),
  EditorState.readOnly.of(readOnly),
  EditorView.editable.of(!readOnly),
];

/**
 * A hook: a place for what `make` builds in its shadow root, anew when `deps` change. `make` says how to end it.
 * @param {(root: ShadowRoot) => () => void} make
 * @param {unknown[]} deps
 */
function useShadow(make, deps) {
  const host = useRef(/** @type {HTMLElement | null} */ (null));
  // In the same picture as what is around it: nothing moves when it comes.
  useLayoutEffect(() => {
    if (!host.current) return;
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" });
    root.replaceChildren();
    return make(root);
  }, deps);
  return host;
}

/**
 * SQL to write, which begins as `value`, or with `readOnly` to read. Tab leaves it, as it leaves every field (WCAG 2.2,
 * 2.1.2). `go` is the mark to go to: a new object each time.
 * @param {{
 *   label: string,
 *   value: string,
 *   onValue?: (value: string) => void,
 *   engine?: import("../engines.js").Engine,
 *   marks?: Mark[],
 *   go?: Mark | null,
 *   readOnly?: boolean,
 * }} props
 */
export function Editor({ label, value, onValue, engine, marks = [], go, readOnly = false }) {
  const view = useRef(/** @type {any} */ (null));
  const dialect = useRef(new Compartment());
  const changed = useRef(onValue);
  changed.current = onValue;

  const host = useShadow(
    (root) => {
      const told = EditorView.updateListener.of((/** @type {any} */ update) => {
        if (update.docChanged) changed.current?.(update.state.doc.toString());
      });
      const writing = [room, overwriting, history(), drawSelection(), highlightActiveLine(), lintGutter(), keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]), told];
      const extensions = [...basics(label, readOnly), dialect.current.of(language(engine)), ...(readOnly ? [] : writing)];
      view.current = new EditorView({ doc: value, extensions, root, parent: root });
      return () => {
        view.current.destroy();
        view.current = null;
      };
    },
    [label, readOnly, readOnly && value],
  );

  useEffect(() => {
    view.current.dispatch({ effects: dialect.current.reconfigure(language(engine)) });
  }, [engine]);
  useEffect(() => {
    if (readOnly) return;
    const { state } = view.current;
    view.current.dispatch(setDiagnostics(state, marks.map((mark) => ({ ...range(state.doc, mark), severity: mark.severity, message: mark.message }))));
  }, [JSON.stringify(marks)]);
  useEffect(() => {
    if (!go) return;
    const { from } = range(view.current.state.doc, go);
    view.current.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    view.current.focus();
  }, [go]);
  return html`<div class="editor" ref=${host}></div>`;
}

/**
 * From a mark to the end of its word. The API counts characters, the editor UTF-16 units.
 * @param {any} doc
 * @param {Mark} mark
 */
function range(doc, { line, column }) {
  const { from, text } = doc.line(Math.min(Math.max(line, 1), doc.lines));
  const at = [...text].slice(0, column - 1).join("").length;
  const word = /^\w+|^\S/.exec(text.slice(at))?.[0].length ?? 0;
  return { from: from + at, to: from + at + word };
}

/**
 * What changed between two texts: side by side, on a phone one beneath the other.
 * @param {{ label: string, before: string, after: string, engine?: import("../engines.js").Engine }} props
 */
export function Compare({ label, before, after, engine }) {
  const host = useShadow(
    (root) => {
      const parts = (/** @type {string} */ of) => [...basics(`${label}, ${of}`, true), language(engine)];
      const collapseUnchanged = { margin: 3, minSize: 6 };
      const view = matchMedia("(max-width: 45rem)").matches
        ? new EditorView({
            doc: after,
            root,
            parent: root,
            extensions: [...parts("changes"), unifiedMergeView({ original: before, mergeControls: false, collapseUnchanged })],
          })
        : new MergeView({
            a: { doc: before, extensions: parts("before") },
            b: { doc: after, extensions: parts("after") },
            root,
            parent: root,
            collapseUnchanged,
          });
      return () => view.destroy();
    },
    [label, before, after, engine],
  );
  return html`<div class="editor" ref=${host}></div>`;
}
