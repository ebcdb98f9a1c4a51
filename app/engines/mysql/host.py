"""Inspecting a MySQL or MariaDB server: whether it can hold tenants, and what it leaves open to every account."""

import re

from app.engines.base import EngineError, HostFacts
from app.engines.hosts import sessions_for_tenants
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.errors import NO_PRIVILEGE_ON_TABLE, ignored
from app.engines.mysql.flavours import MARIADB, TENANT_PATTERN, TENANT_PRIVILEGES, Flavour

_VARIABLES = (
    "version",
    "max_connections",
    "read_only",
    "local_infile",
    "log_bin",
    "log_bin_trust_function_creators",
    "innodb_file_per_table",
    "have_ssl",
    "have_symlink",
    "disabled_storage_engines",
    "partial_revokes",
    "enforce_storage_engine",
    "innodb_temp_data_file_path",
)
# Storage engines that keep rows where no other privilege is checked: in files, on other servers.
_REACHING_ENGINES = {"CONNECT", "FEDERATED", "SPIDER", "S3"}
_GRANT = re.compile(r"GRANT (?P<privileges>.+?) ON (?P<on>\S+) TO ")


async def inspect(connection: MySQLConnection) -> HostFacts:
    rows = await connection.run("SHOW GLOBAL VARIABLES WHERE variable_name IN %s", ([*_VARIABLES],))
    variables = {name: str(value) for name, value in rows}
    flavour = connection.flavour
    numbers = tuple(int(part) for part in variables["version"].split("-")[0].split(".")[:3])
    oldest = ".".join(map(str, flavour.oldest))
    missing = [f"the administrator lacks {name}" for name in await _missing_privileges(connection, variables)]
    if numbers < flavour.oldest:
        missing.append(f"{flavour.name} {oldest} or later is needed; this is {variables['version']}")
    if variables["read_only"] == "ON":
        missing.append("this server is read-only")
    if missing:
        raise EngineError("; ".join(missing))
    return HostFacts(
        flavour=flavour.name,
        version=variables["version"],
        max_connections=sessions_for_tenants(int(variables["max_connections"])),
        shortcomings=(
            *_shortcomings(flavour, variables),
            *await _reaching_engines(connection),
            *await _still_open(connection),
        ),
    )


async def _missing_privileges(connection: MySQLConnection, variables: dict[str, str]) -> list[str]:
    # With partial_revokes, MySQL takes the pattern for a database's name.
    places = ["*.*"] if variables.get("partial_revokes") == "ON" else ["*.*", f"`{TENANT_PATTERN}`.*"]
    everywhere: set[str] = set()
    in_databases: set[str] = set()
    for (line,) in await connection.run("SHOW GRANTS"):
        found = _GRANT.match(line)
        if found is None:
            continue
        privileges = {name.strip() for name in found["privileges"].split(",")}
        if found["on"] == "*.*":
            everywhere |= privileges
        if found["on"] in places and "WITH GRANT OPTION" in line:
            in_databases |= privileges
    if "ALL PRIVILEGES" in everywhere:
        return []
    missing = [name for name in connection.flavour.global_privileges if name not in everywhere]
    lacking = [name for name in TENANT_PRIVILEGES.split(", ") if name not in in_databases]
    if lacking and "ALL PRIVILEGES" not in in_databases:
        missing.append(f"{', '.join(lacking)} on {places[-1]} WITH GRANT OPTION")
    return missing


def _shortcomings(flavour: Flavour, variables: dict[str, str]) -> list[str]:
    no_triggers = variables["log_bin"] == "ON" and variables["log_bin_trust_function_creators"] == "OFF"
    checks = (
        (
            variables["local_infile"] == "ON",
            "local_infile is on: a tenant's client can be asked for its local files.",
        ),
        (
            no_triggers,
            "The binary log is on without log_bin_trust_function_creators: tenants can make no trigger or function.",
        ),
        (
            variables["innodb_file_per_table"] == "OFF",
            "innodb_file_per_table is off: a tenant's storage can't be measured.",
        ),
        (
            variables.get("have_ssl", "YES") != "YES",
            "TLS is off: passwords' proofs and data cross the network in the clear.",
        ),
        (
            flavour is MARIADB and variables.get("have_symlink") == "YES",
            "Symbolic links are on: a tenant's DATA DIRECTORY writes outside the data folder. Start the server with "
            "skip-symbolic-links.",
        ),
        (
            flavour is MARIADB and variables.get("enforce_storage_engine") != "InnoDB",
            "enforce_storage_engine isn't InnoDB: temporary tables of other engines can fill the disk.",
        ),
        (
            ":max:" not in variables["innodb_temp_data_file_path"].lower(),
            "innodb_temp_data_file_path has no max: temporary tables can fill the disk.",
        ),
        (
            flavour is not MARIADB and "MyISAM" not in variables.get("disabled_storage_engines", ""),
            "disabled_storage_engines doesn't name MyISAM: their files grow past what a limit can stop.",
        ),
    )
    return [sentence for lacking, sentence in checks if lacking]


async def _reaching_engines(connection: MySQLConnection) -> list[str]:
    engines = {str(row[0]).upper() for row in await connection.run("SHOW ENGINES") if row[1] in ("YES", "DEFAULT")}
    return [
        f"The storage engine {name} reaches beyond the server and is open to every tenant: uninstall it."
        for name in sorted(engines & _REACHING_ENGINES)
    ]


async def harden(connection: MySQLConnection) -> tuple[str, ...]:
    for user, account_host in await _anonymous(connection):
        await connection.run("DROP USER IF EXISTS %s@%s", (user, account_host))
    if await _public_databases(connection):
        with ignored(NO_PRIVILEGE_ON_TABLE):  # what stays open is reported below
            await connection.run("DELETE FROM mysql.db WHERE User IN ('', 'PUBLIC')")
            await connection.run("FLUSH PRIVILEGES")
    return tuple(await _still_open(connection))


async def _still_open(connection: MySQLConnection) -> list[str]:
    accounts = [
        f"Anybody may log in from {account_host} without a name: DROP USER ''@'{account_host}'."
        for _, account_host in await _anonymous(connection)
    ]
    databases = [
        f"Every account may use the databases {name}: delete their row of mysql.db and FLUSH PRIVILEGES."
        for name in await _public_databases(connection)
    ]
    return accounts + databases


async def _anonymous(connection: MySQLConnection) -> list[tuple[str, str]]:
    return [(user, host) for user, host in await connection.run("SELECT User, Host FROM mysql.user WHERE User = ''")]


async def _public_databases(connection: MySQLConnection) -> list[str]:
    rows = await connection.run("SELECT DISTINCT Db FROM mysql.db WHERE User IN ('', 'PUBLIC') ORDER BY Db")
    return [name for (name,) in rows]
