// Files that a page makes.

/** Gives a text to the browser as a file. @param {string[]} parts @param {string} name @param {string} type */
export function save(parts, name, type) {
  const url = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
