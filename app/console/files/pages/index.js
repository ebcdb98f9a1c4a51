// One line for each page. The first that fits an address is shown, so a fixed part comes before a parameter.

/** @type {import("../router.js").Route[]} */
export const routes = [
  { path: "/", title: "Databases", load: () => import("./databases.js") },
  { path: "/databases", title: "Databases", load: () => import("./databases.js") },
  { path: "/databases/new", title: "New database", load: () => import("./new-database.js") },

  { path: "/databases/deleted", title: "Deleted databases", load: () => import("./deleted-databases.js") },
  { path: "/databases/:uuid", title: "Database", load: () => import("./database/overview.js") },
  { path: "/databases/:uuid/connect", title: "Connect", load: () => import("./database/connect.js") },
  { path: "/databases/:uuid/users", title: "Users", load: () => import("./database/users.js") },
  { path: "/databases/:uuid/charts", title: "Charts", load: () => import("./database/charts.js") },
  { path: "/databases/:uuid/backups", title: "Backups", load: () => import("./database/backups.js") },
  { path: "/databases/:uuid/operations", title: "Operations", load: () => import("./database/operations.js") },
  { path: "/databases/:uuid/blueprints", title: "Blueprints", load: () => import("./database/blueprints.js") },
  { path: "/operations", title: "Operations", load: () => import("./operations.js") },
  { path: "/operations/:uuid", title: "Operation", load: () => import("./operation.js") },

  // work: blueprints, questions, webhooks

  { path: "/sign-in", title: "Sign in", open: true, load: () => import("./sign-in.js") },
  { path: "/account", title: "Your account", load: () => import("./account.js") },
  // sign-in: signing in, the account

  // people: keys, teams, audit, usage

  // operators
];
