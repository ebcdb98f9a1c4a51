// What a page is written with, in one import: htm bound to preact, hooks, signals.
import { Fragment, h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

/** @typedef {import("./vendor/preact.js").ComponentChildren} Children */

export const html = htm.bind(h);
export { Fragment };
export { render } from "./vendor/preact.js";
export { useCallback, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "./vendor/signals.js";
