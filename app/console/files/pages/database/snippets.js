// How clients connect, by engine and by what its host requires of TLS. Programs take the password from the environment;
// what a shell or a tool reads has it.

/** @typedef {import("./shell.js").Database & { tls_ca?: string | null }} Database */
/** @typedef {{ id: string, label: string, text: string, note?: string }} Snippet */

const CA_FILE = "ca.pem";
export const HIDDEN = "********";

/**
 * What Django's mysqlclient and Rails' mysql2 do otherwise where they are built with MariaDB's client library, as Debian's
 * are, not with Oracle's.
 * @type {Record<"django" | "rails", Record<string, string>>}
 */
const ON_MARIADBS_LIBRARY = {
  django: {
    prefer: "With MariaDB's client library, mysqlclient connects without TLS at this level.",
    encrypt: "With MariaDB's client library, mysqlclient encrypts, but goes on without where a server offers no TLS.",
    ca: "With MariaDB's client library, mysqlclient verifies the host's name as well: its certificate has to have it.",
  },
  rails: {
    prefer: "With MariaDB's client library, mysql2 connects without TLS at this level.",
    encrypt: "With MariaDB's client library, mysql2 encrypts, but goes on without where a server offers no TLS.",
    ca: "With MariaDB's client library, mysql2 encrypts, but verifies nothing, and goes on without where a server offers no TLS.",
    full: "With MariaDB's client library, mysql2 encrypts, but verifies nothing, and goes on without where a server offers no TLS: build it with Oracle's.",
  },
};

const quoted = (/** @type {string} */ text) => `'${text.replaceAll("'", `'\\''`)}'`;
const json = (/** @type {unknown} */ value) => JSON.stringify(value);
const lines = (/** @type {(string | false | null | undefined | "")[]} */ ...all) => all.filter(Boolean).join("\n").replace(/^ $/gm, "");

/**
 * What to verify: `off`, `prefer`, `encrypt` (nothing verified), `ca` (the authority), `full` (the host's name too).
 * @param {Database} database
 */
function security(database) {
  if (database.tls_mode === "disable") return "off";
  if (database.tls_mode === "prefer") return "prefer";
  if (database.tls_mode === "verify-full") return "full";
  return database.tls_ca ? "ca" : "encrypt";
}

/** @type {Record<import("../../engines.js").Engine, (database: Database, password: string) => Snippet[]>} */
const OF_ENGINE = { postgres, mysql };

/**
 * @param {Database} database @param {string} password
 * @returns {Snippet[]}
 */
export function snippets(database, password) {
  return OF_ENGINE[database.db_type](database, password);
}

/** @param {Database} database @param {string} password @param {string} scheme @param {string} options */
function address({ db_username, host, port, db_name }, password, scheme, options) {
  const at = host.includes(":") ? `[${host}]` : host;
  const login = encodeURIComponent(db_username) + (password && `:${password === HIDDEN ? HIDDEN : encodeURIComponent(password)}`);
  return `${scheme}://${login}@${at}:${port}/${db_name}${options && `?${options}`}`;
}

/** @param {Database} database @param {string} password @param {string} url */
const environment = ({ host, port, db_name, db_username }, password, url) =>
  lines(
    `DATABASE_URL=${url}`,
    `DATABASE_HOST=${host}`,
    `DATABASE_PORT=${port}`,
    `DATABASE_NAME=${db_name}`,
    `DATABASE_USER=${db_username}`,
    `DATABASE_PASSWORD=${password}`,
  );

/** @param {Database} database @param {string} password @returns {Snippet[]} */
function postgres(database, password) {
  const { host, port, db_name, db_username } = database;
  const level = security(database);
  const sslmode = { off: "disable", prefer: "prefer", encrypt: "require", ca: "verify-ca", full: "verify-full" }[level];
  // Without a file of its own libpq trusts no authority: "system" are those of the machine (libpq 16 and later).
  const root = database.tls_ca ? CA_FILE : level === "full" ? "system" : "";
  const options = `sslmode=${sslmode}${root && `&sslrootcert=${root}`}`;
  const url = address(database, password, "postgresql", options);
  const node = {
    off: "ssl: false,",
    prefer: "ssl: false, // or { rejectUnauthorized: false }",
    encrypt: "ssl: { rejectUnauthorized: false },",
    ca: `ssl: { ca: readFileSync("${CA_FILE}", "utf8"), checkServerIdentity: () => undefined },`,
    full: database.tls_ca ? `ssl: { ca: readFileSync("${CA_FILE}", "utf8") },` : "ssl: true,",
  }[level];
  const own = root && root !== "system" ? ` sslrootcert=${root}` : "";
  return [
    {
      id: "psql",
      label: "psql",
      text: `PGPASSWORD=${quoted(password)} psql ${quoted(address(database, "", "postgresql", options))}`,
    },
    { id: "url", label: "URL", text: url },
    {
      id: "python",
      label: "Python (psycopg)",
      text: lines(
        "import os",
        "import psycopg",
        " ",
        "connection = psycopg.connect(",
        `    host=${json(host)},`,
        `    port=${port},`,
        `    dbname=${json(db_name)},`,
        `    user=${json(db_username)},`,
        '    password=os.environ["DATABASE_PASSWORD"],',
        `    sslmode=${json(sslmode)},`,
        root && `    sslrootcert=${json(root)},`,
        ")",
      ),
    },
    {
      id: "node",
      label: "Node (pg)",
      text: lines(
        root === CA_FILE && 'import { readFileSync } from "node:fs";',
        'import pg from "pg";',
        " ",
        "const client = new pg.Client({",
        `  host: ${json(host)},`,
        `  port: ${port},`,
        `  database: ${json(db_name)},`,
        `  user: ${json(db_username)},`,
        "  password: process.env.DATABASE_PASSWORD,",
        `  ${node}`,
        "});",
        "await client.connect();",
      ),
    },
    {
      id: "go",
      label: "Go (pgx)",
      text: lines(
        "config, err := pgx.ParseConfig(",
        `\t${json(`host=${host} port=${port} dbname=${db_name} user=${db_username} sslmode=${sslmode}${own}`)})`,
        "if err != nil {",
        "\treturn err",
        "}",
        'config.Password = os.Getenv("DATABASE_PASSWORD")',
        "connection, err := pgx.ConnectConfig(ctx, config)",
      ),
    },
    {
      id: "django",
      label: "Django",
      text: lines(
        "DATABASES = {",
        '    "default": {',
        '        "ENGINE": "django.db.backends.postgresql",',
        `        "HOST": ${json(host)},`,
        `        "PORT": ${port},`,
        `        "NAME": ${json(db_name)},`,
        `        "USER": ${json(db_username)},`,
        '        "PASSWORD": os.environ["DATABASE_PASSWORD"],',
        `        "OPTIONS": {"sslmode": ${json(sslmode)}${root && `, "sslrootcert": ${json(root)}`}},`,
        "    }",
        "}",
      ),
    },
    {
      id: "rails",
      label: "Rails",
      text: lines(
        "production:",
        "  adapter: postgresql",
        `  host: ${json(host)}`,
        `  port: ${port}`,
        `  database: ${json(db_name)}`,
        `  username: ${json(db_username)}`,
        `  password: <%= ENV["DATABASE_PASSWORD"].to_json %>`,
        `  sslmode: ${sslmode}`,
        root && `  sslrootcert: ${root}`,
      ),
    },
    { id: "env", label: "Environment file", text: environment(database, password, url) },
  ];
}

/** @param {Database} database @param {string} password @returns {Snippet[]} */
function mysql(database, password) {
  const { host, port, db_name, db_username } = database;
  const level = security(database);
  const own = database.tls_ca && (level === "ca" || level === "full");
  const mode = { off: "DISABLED", prefer: "PREFERRED", encrypt: "REQUIRED", ca: "VERIFY_CA", full: "VERIFY_IDENTITY" }[level];
  const unverified = "--ssl --disable-ssl-verify-server-cert";
  const mariadb = {
    off: "--skip-ssl",
    prefer: unverified,
    encrypt: unverified,
    ca: `--ssl-ca=${CA_FILE} --disable-ssl-verify-server-cert`,
    full: `${own ? `--ssl-ca=${CA_FILE} ` : "--ssl "}--ssl-verify-server-cert`,
  }[level];
  const shell = (/** @type {string} */ program, /** @type {string} */ options) =>
    `MYSQL_PWD=${quoted(password)} ${program} --protocol=tcp --host=${quoted(host)} --port=${port} \\\n  --user=${quoted(db_username)} ${options} ${quoted(db_name)}`;
  const python = {
    off: "ssl_disabled=True,",
    prefer: "",
    encrypt: 'ssl={"verify_mode": "none"},',
    ca: `ssl_ca="${CA_FILE}", ssl_verify_cert=True,`,
    full: own ? `ssl_ca="${CA_FILE}", ssl_verify_cert=True, ssl_verify_identity=True,` : "ssl=ssl.create_default_context(),",
  }[level];
  const node = {
    off: "",
    prefer: "",
    encrypt: "ssl: { rejectUnauthorized: false },",
    ca: `ssl: { ca: readFileSync("${CA_FILE}", "utf8") },`,
    full: own ? `ssl: { ca: readFileSync("${CA_FILE}", "utf8"), verifyIdentity: true },` : "ssl: { verifyIdentity: true },",
  }[level];
  const url = address(database, password, "mysql", "");
  return [
    { id: "mysql", label: "mysql", text: shell("mysql", `--ssl-mode=${mode}${own ? ` --ssl-ca=${CA_FILE}` : ""}`) },
    {
      id: "mariadb",
      label: "mariadb",
      text: shell("mariadb", mariadb),
      note: level === "encrypt" || level === "ca" ? "MariaDB's client encrypts, but goes on without where a server offers no TLS. Only --ssl-verify-server-cert insists, for a certificate of the host's name." : "",
    },
    { id: "url", label: "URL", text: url, note: level === "off" ? "" : "What asks for TLS in a URL, each driver calls otherwise." },
    {
      id: "python",
      label: "Python (PyMySQL)",
      text: lines(
        "import os",
        python.includes("ssl.") && "import ssl",
        "import pymysql",
        " ",
        "connection = pymysql.connect(",
        `    host=${json(host)},`,
        `    port=${port},`,
        `    database=${json(db_name)},`,
        `    user=${json(db_username)},`,
        '    password=os.environ["DATABASE_PASSWORD"],',
        python && `    ${python}`,
        ")",
      ),
    },
    {
      id: "node",
      label: "Node (mysql2)",
      note: level === "full" && isAddress(host) ? "mysql2 checks a certificate for a name, not for an address: connect to the host by its name." : "",
      text: lines(
        own && 'import { readFileSync } from "node:fs";',
        'import mysql from "mysql2/promise";',
        " ",
        "const connection = await mysql.createConnection({",
        `  host: ${json(host)},`,
        `  port: ${port},`,
        `  database: ${json(db_name)},`,
        `  user: ${json(db_username)},`,
        "  password: process.env.DATABASE_PASSWORD,",
        node && `  ${node}`,
        "});",
      ),
    },
    {
      id: "go",
      label: "Go (go-sql-driver)",
      text: lines(
        ...goAuthority(level, host, Boolean(own)),
        "config := mysql.NewConfig()",
        'config.Net = "tcp"',
        `config.Addr = ${json(`${host.includes(":") ? `[${host}]` : host}:${port}`)}`,
        `config.DBName = ${json(db_name)}`,
        `config.User = ${json(db_username)}`,
        'config.Passwd = os.Getenv("DATABASE_PASSWORD")',
        own
          ? 'config.TLSConfig = "headwater"'
          : `config.TLSConfig = ${json({ off: "false", prefer: "preferred", encrypt: "skip-verify", ca: "", full: "true" }[level])}`,
        'db, err := sql.Open("mysql", config.FormatDSN())',
      ),
    },
    {
      id: "django",
      label: "Django",
      text: lines(
        "DATABASES = {",
        '    "default": {',
        '        "ENGINE": "django.db.backends.mysql",',
        `        "HOST": ${json(host)},`,
        `        "PORT": ${port},`,
        `        "NAME": ${json(db_name)},`,
        `        "USER": ${json(db_username)},`,
        '        "PASSWORD": os.environ["DATABASE_PASSWORD"],',
        level !== "off" && `        "OPTIONS": {"ssl_mode": ${json(mode)}${own ? `, "ssl": {"ca": ${json(CA_FILE)}}` : ""}},`,
        "    }",
        "}",
      ),
      note: ON_MARIADBS_LIBRARY.django[level],
    },
    {
      id: "rails",
      label: "Rails",
      text: lines(
        "production:",
        "  adapter: mysql2",
        `  host: ${json(host)}`,
        `  port: ${port}`,
        `  database: ${json(db_name)}`,
        `  username: ${json(db_username)}`,
        `  password: <%= ENV["DATABASE_PASSWORD"].to_json %>`,
        `  ssl_mode: ${mode.toLowerCase()}`,
        own && `  sslca: ${CA_FILE}`,
        (level === "encrypt" || level === "full") && `  sslverify: ${level === "full"}`,
      ),
      note: ON_MARIADBS_LIBRARY.rails[level],
    },
    { id: "env", label: "Environment file", text: environment(database, password, url) },
  ];
}

/** Whether it is an IP address, and no name. @param {string} host */
const isAddress = (host) => host.includes(":") || /^[\d.]+$/.test(host);

/** @param {string} level @param {string} host @param {boolean} own */
function goAuthority(level, host, own) {
  if (!own) return [];
  const verify =
    level === "full"
      ? [`\tServerName: ${json(host)},`]
      : [
          "\t// The certificate is of this authority, whatever its name.",
          "\tInsecureSkipVerify: true,",
          "\tVerifyConnection: func(state tls.ConnectionState) error {",
          "\t\t_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool})",
          "\t\treturn err",
          "\t},",
        ];
  return [
    `pem, err := os.ReadFile("${CA_FILE}")`,
    "if err != nil {",
    "\treturn err",
    "}",
    "pool := x509.NewCertPool()",
    "pool.AppendCertsFromPEM(pem)",
    'mysql.RegisterTLSConfig("headwater", &tls.Config{',
    "\tRootCAs: pool,",
    ...verify,
    "})",
  ];
}
