// Runs before the first paint, so that a chosen theme doesn't flash. Without a choice the system's holds.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("headwater.theme");
  } catch {
    // A browser may refuse storage; then the system's theme holds.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
