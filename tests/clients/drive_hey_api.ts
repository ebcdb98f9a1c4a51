// A database's life through the client that hey-api generates. Prints what each answer said.

import { createClient } from "./hey_api/client/index.js";
import {
  changeQuotas,
  createDatabase,
  deleteDatabase,
  getDatabase,
  listDeletedDatabases,
  renameDatabase,
  undeleteDatabase,
} from "./hey_api/index.js";

const client = createClient({ baseUrl: process.env.API_URL!, auth: process.env.API_KEY! });
const change = () => ({ client, headers: { "Idempotency-Key": crypto.randomUUID() } });

const created = await createDatabase({ ...change(), query: { wait: true, timeout: 60 }, body: { name: "orders" } });
const uuid = created.data!.data.uuid;
const path = { uuid };
const got = await getDatabase({ client, path });
const renamed = await renameDatabase({ ...change(), path, body: { name: "orders-eu" } });
const limited = await changeQuotas({ ...change(), path, body: { connection_hard_limit: 5 } });
const deleted = await deleteDatabase({ ...change(), path });
const gone = await getDatabase({ client, path });
const kept = await listDeletedDatabases({ client });
const back = await undeleteDatabase({ ...change(), path });

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
