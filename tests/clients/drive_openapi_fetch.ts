// A database's life through openapi-fetch, with the types that openapi-typescript generates. Prints what each answer said.

import createClient from "openapi-fetch";

import type { components, paths } from "./openapi_typescript.js";

const client = createClient<paths>({
  baseUrl: process.env.API_URL!,
  headers: { Authorization: `Bearer ${process.env.API_KEY}` },
});
const change = () => ({ "Idempotency-Key": crypto.randomUUID() });
// That fields with defaults may be left out, and that variables may have any names.
const creation: components["schemas"]["CreateDatabase"] = { name: "orders" };
const application: components["schemas"]["ApplyToDatabase"] = { blueprint_uuid: "", variables: { table: "notes" } };
void application;

const created = await client.POST("/api/v1/databases", {
  params: { query: { wait: true, timeout: 60 }, header: change() },
  body: creation,
});
const path = { uuid: created.data!.data.uuid };
const got = await client.GET("/api/v1/databases/{uuid}", { params: { path } });
const renamed = await client.PATCH("/api/v1/databases/{uuid}", {
  params: { path, header: change() },
  body: { name: "orders-eu" },
});
const limited = await client.PATCH("/api/v1/databases/{uuid}/quotas", {
  params: { path, header: change() },
  body: { connection_hard_limit: 5 },
});
const deleted = await client.DELETE("/api/v1/databases/{uuid}", { params: { path, header: change() } });
const gone = await client.GET("/api/v1/databases/{uuid}", { params: { path } });
const kept = await client.GET("/api/v1/deleted_databases");
const back = await client.POST("/api/v1/databases/{uuid}/undeletions", { params: { path, header: change() } });

console.log(
  JSON.stringify({
    created: created.data!.data.status,
    got: got.data!.data.connection_string,
    renamed: renamed.data!.data.name,
    limited: limited.data!.data.limits.connection_hard_limit,
    deleted: deleted.data!.data.deleted,
    gone: gone.error!.error.code,
    kept: kept.data!.data.map((one) => one.name),
    back: back.data!.data.status,
  }),
);
