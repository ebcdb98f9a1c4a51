// The navigation, in groups. `operator`: for operators alone.

/** @typedef {{ path: string, label: string }} Entry */
/** @typedef {{ label: string, operator?: boolean, entries: Entry[] }} Group */

/** @type {Group[]} */
export const groups = [
  {
    label: "Databases",
    entries: [
      { path: "/databases", label: "Databases" },
      { path: "/databases/deleted", label: "Deleted databases" },
      { path: "/backups", label: "Backups" },
      { path: "/operations", label: "Operations" },
    ],
  },
  {
    label: "Work",
    entries: [
      { path: "/blueprints", label: "Blueprints" },
      { path: "/questions", label: "Questions" },
      { path: "/webhooks", label: "Webhooks" },
    ],
  },
  {
    label: "Team",
    entries: [
      { path: "/keys", label: "API keys" },
      { path: "/teams", label: "Teams" },
      { path: "/audit", label: "Audit log" },
      { path: "/usage", label: "Usage" },
    ],
  },
  {
    label: "Operators",
    operator: true,
    entries: [
      { path: "/operator/hosts", label: "Hosts" },
      { path: "/operator/pools", label: "Pools" },
      { path: "/operator/findings", label: "Findings" },
      { path: "/operator/audit-seals", label: "Audit seals" },
      { path: "/operator/operations", label: "All operations" },
    ],
  },
];
