// One line for each page. The first that fits an address is shown, so a fixed part comes before a parameter.

/** @type {import("../router.js").Route[]} */
export const routes = [
  { path: "/", title: "Databases", load: () => import("./databases.js") },
  { path: "/databases", title: "Databases", load: () => import("./databases.js") },
  { path: "/databases/new", title: "New database", load: () => import("./new-database.js") },

  // database: one database, operations, deleted databases

  // work: blueprints, questions, webhooks

  // sign-in: signing in, the account

  // people: keys, teams, audit, usage

  // operators
];
