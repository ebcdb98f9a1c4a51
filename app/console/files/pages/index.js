// One line for each page. The first that fits an address is shown, so a fixed part comes before a parameter.

/** @type {import("../current-page.js").Route[]} */
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
  { path: "/backups", title: "Backups", load: () => import("./backups.js") },
  { path: "/operations", title: "Operations", load: () => import("./operations.js") },
  { path: "/operations/:uuid", title: "Operation", load: () => import("./operation.js") },

  // work: blueprints, questions, webhooks
  { path: "/blueprints", title: "Blueprints", load: () => import("./blueprints/list.js") },
  { path: "/blueprints/new", title: "New blueprint", load: () => import("./blueprints/write.js") },
  { path: "/blueprints/:uuid", title: "Blueprint", load: () => import("./blueprints/show.js") },
  { path: "/blueprints/:uuid/change", title: "Change a blueprint", load: () => import("./blueprints/write.js") },
  { path: "/blueprints/:uuid/run", title: "Try and apply", load: () => import("./blueprints/run.js") },
  { path: "/blueprints/:uuid/versions", title: "Versions", load: () => import("./blueprints/versions.js") },
  { path: "/blueprints/:uuid/applications", title: "Applications", load: () => import("./blueprints/applications.js") },
  { path: "/blueprints/:uuid/applications/:id", title: "Application", load: () => import("./blueprints/application.js") },
  { path: "/questions", title: "Questions", load: () => import("./questions.js") },
  { path: "/webhooks", title: "Webhooks", load: () => import("./webhooks/list.js") },
  { path: "/webhooks/new", title: "New endpoint", load: () => import("./webhooks/new.js") },
  { path: "/webhooks/:id", title: "Endpoint", load: () => import("./webhooks/deliveries.js") },
  { path: "/webhooks/:id/settings", title: "Endpoint", load: () => import("./webhooks/settings.js") },
  { path: "/webhooks/:id/verifying", title: "Endpoint", load: () => import("./webhooks/verifying.js") },
  { path: "/webhooks/:id/deliveries/:delivery", title: "Delivery", load: () => import("./webhooks/delivery.js") },

  { path: "/sign-in", title: "Sign in", open: true, load: () => import("./sign-in.js") },
  { path: "/account", title: "Your account", load: () => import("./account.js") },
  // sign-in: signing in, the account

  // people: keys, teams, audit, usage
  { path: "/keys", title: "API keys", load: () => import("./people/keys.js") },
  { path: "/keys/new", title: "New API key", load: () => import("./people/new-key.js") },
  { path: "/keys/:id", title: "API key", load: () => import("./people/key.js") },
  { path: "/teams", title: "Teams", load: () => import("./people/teams.js") },
  { path: "/teams/:id", title: "Team", load: () => import("./people/team.js") },
  { path: "/invitations", title: "Invitation", load: () => import("./people/invitation.js"), open: true },
  { path: "/audit", title: "Audit log", load: () => import("./people/audit.js") },
  { path: "/usage", title: "Usage", load: () => import("./people/usage.js") },

  // operators
  { path: "/operator/hosts", title: "Hosts", load: () => import("./operators/hosts.js") },
  { path: "/operator/pools", title: "Pools", load: () => import("./operators/pools.js") },
  { path: "/operator/findings", title: "Findings", load: () => import("./operators/findings.js") },
  { path: "/operator/audit-seals", title: "Seals of the audit log", load: () => import("./operators/seals.js") },
  { path: "/operator/operations", title: "Operations of everyone", load: () => import("./operators/operations.js") },
];
