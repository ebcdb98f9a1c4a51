// Where the focus goes when what had it is gone or disabled: nearby, and never nowhere, for who has a keyboard and no
// pointer. Browsers leave it with the document then, and a screen reader at the page's beginning.

const NEAR = "dialog, .table-scroll, .buttons, section, form, main";

/**
 * From now on, for all that is in `root`.
 * @param {HTMLElement} root
 */
export function watchFocus(root) {
  /** @type {Element[]} what is around the last that had the focus, the nearest first */
  let around = [];
  let asked = false;
  const look = () => {
    asked = false;
    const place = isLost() && around.find((one) => one.isConnected);
    if (place) focusOn(place);
  };
  document.addEventListener("focusin", ({ target }) => (around = target instanceof Element ? placesAround(target) : []));
  document.addEventListener("focusout", ({ target }) => {
    // Somebody has pressed beside everything: what had the focus is still there.
    setTimeout(() => {
      if (target instanceof HTMLElement && target.isConnected && !target.matches(":disabled") && isLost()) around = [];
    });
  });
  new MutationObserver(() => {
    if (asked) return;
    asked = true;
    // After the next picture: until then what was disabled counts as having the focus.
    requestAnimationFrame(() => setTimeout(look));
  }).observe(root, { childList: true, subtree: true, attributeFilter: ["disabled"] });
}

const isLost = () => document.activeElement === document.body || document.activeElement === null;

/** @param {Element} of */
function placesAround(of) {
  /** @type {Element[]} */
  const places = [];
  for (let one = of.parentElement; one; one = one.parentElement) if (one.matches(NEAR)) places.push(one);
  return places;
}

/** @param {Element} place of the whole page it is the heading */
function focusOn(place) {
  const target = place.matches("main") ? (place.querySelector("h1") ?? place) : place;
  if (!(target instanceof HTMLElement)) return;
  if (target.tabIndex < 0) target.tabIndex = -1;
  target.focus({ preventScroll: true });
}
