"""Loading a dump as the tenant: what it defines runs with the tenant's rights, whatever it is."""

import re
from collections.abc import AsyncIterator, Collection, Iterable

from app.engines.base import HostFull, Tenant
from app.engines.dumping import DumpFormat, LoadRefused
from app.engines.postgres import catalog
from app.engines.postgres.connections import PostgresConnections
from app.engines.postgres.dumps import helpers
from app.engines.postgres.dumps.archive import Archive, ArchiveInvalid, Entry
from app.engines.postgres.dumps.dump import LAYOUT, server_version
from app.engines.postgres.dumps.processes import RunningTool, ToolProcess, environment
from app.engines.postgres.dumps.refusals import answering, said
from app.engines.postgres.dumps.roles import RoleNames, policy_named
from app.engines.postgres.dumps.tools import DumpTools, major_of
from app.engines.postgres.quoting import quote_name

_SESSION = {
    # The account's end is written durably after it, and everything before that with it.
    "synchronous_commit": "off",
    "statement_timeout": "0",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "0",
    "tcp_keepalives_idle": "60",
}
_OF_TEMPLATE = re.compile(r"\bWITH SCHEMA pg_catalog;")
_ARGUMENTS = [
    "--no-owner",
    "--no-tablespaces",
    "--no-security-labels",
    "--exit-on-error",
    "--no-password",
    # What is read here is read for materialized views alone, as the tenant that made them reads: with off, they fail.
    # Rows are written before there are policies.
    "--enable-row-security",
]
_LACKING = ("No space left on device", "Disk quota exceeded", "out of shared memory", "ERROR:  out of memory")
"""The server's messages when it lacks something at the moment, which is no fault of the dump. The text decides, because
the tool prints no code; a dump that says so itself is loaded again, at its tenant's own cost."""
_TRANSACTIONS = "--transaction-size=100"
"""Not one transaction for each object, and not one for all, whose locks the server would hold together. The option
exists since version 17."""
_TRANSACTIONS_SINCE = 17
_ROWS_FOLLOW = " FROM stdin;\n"
_MOST_OF_ACCOUNTS = 16 * 2**20
"""The most characters of statements that wait for the end of a load."""


class _Loadable(Archive):
    """The dump as this tenant can load it: with its own roles' names, and without what its database has from its
    template."""

    def __init__(self, target: str, owner: str, accounts: Collection[str]) -> None:
        """`accounts` are those of `owner`, whose database this is or becomes."""
        # Whoever dumped it has counted the rows; the tool sees where it ends.
        super().__init__(counting=False)
        self._target = target
        self._owner = owner
        self._accounts = accounts
        self._of_template: set[str] = set()
        self._left_out: str | None = None
        """The policy that was left out last. The tool writes the comment on a policy right after the policy, so that no
        others have to be remembered."""
        self._made: set[tuple[str | None, str]] = set()
        self.of_accounts: list[str] = []
        """Default rights that the owner's accounts give, which the tenant may not change."""
        self._accounts_length = 0

    def see(self, entry: Entry) -> None:
        carried = self._accounts if self.database == self._owner else ()
        roles = RoleNames(self.database, self._target, carried)
        definition = entry.definition or ""
        if entry.kind in ("ACL", "DEFAULT ACL"):
            entry.definition = roles.granted(definition)
            if entry.kind == "DEFAULT ACL":
                self._keep(RoleNames(self.database, self._owner, carried).given_by_accounts(definition))
        elif entry.kind == "TABLE":
            self._made.add((entry.namespace, entry.tag))
        elif entry.kind == "TABLE DATA" and (entry.namespace, entry.tag) in self._made:
            entry.copy = _frozen(entry)
        elif entry.kind == "POLICY":
            entry.definition = roles.policy(definition)
            if not entry.definition:
                self._left_out = policy_named(definition)
        elif entry.kind == "EXTENSION" and _OF_TEMPLATE.search(definition):
            self._of_template.add(f"EXTENSION {quote_name(entry.tag)}")
            self._of_template.add(f"EXTENSION {entry.tag}")
        elif entry.kind == "COMMENT" and (entry.tag in self._of_template or self._is_left_out(definition)):
            entry.definition = ""

    def _is_left_out(self, comment: str) -> bool:
        """Whether it is a comment on a policy that isn't there."""
        return self._left_out is not None and policy_named(comment) == self._left_out

    def _keep(self, statements: Iterable[str]) -> None:
        try:
            for statement in statements:
                self.of_accounts.append(statement)
                self._accounts_length += len(statement)
                if self._accounts_length > _MOST_OF_ACCOUNTS:
                    raise ArchiveInvalid(f"the default rights of its users are above {_MOST_OF_ACCOUNTS // 2**20} MiB")
        except ValueError as error:
            raise ArchiveInvalid(str(error)) from error


def _frozen(entry: Entry) -> str | None:
    """The statement that loads the rows as they are when a vacuum has been over them: else the first look at each,
    which is the comparison's, writes it once more. The server takes them so into a table that was made or emptied in
    the same transaction. The table is empty, and nobody's trigger is there yet."""
    copy = entry.copy or ""
    if not copy.endswith(_ROWS_FOLLOW):
        return entry.copy
    table = f"{quote_name(entry.namespace or '')}.{quote_name(entry.tag)}"
    return f"TRUNCATE TABLE ONLY {table}; {copy.removesuffix(_ROWS_FOLLOW)} FROM stdin WITH (FREEZE);\n"


async def load(
    connections: PostgresConnections,
    tools: DumpTools,
    tenant: Tenant,
    form: DumpFormat,
    chunks: AsyncIterator[bytes],
    *,
    owner: Tenant,
) -> None:
    """Loads the dump. `owner` is the tenant, or the tenant that gets its database."""
    if form.flavour != "postgres" or form.layout != LAYOUT:
        raise LoadRefused(f"a dump of {form.flavour} in the layout {form.layout} can't be loaded here")
    _, major = await server_version(connections)
    folder, tool = await tools.folder(max(major, major_of(form.tool)))
    arguments = [*_ARGUMENTS, f"--dbname={tenant.name}"]
    if major_of(tool) >= _TRANSACTIONS_SINCE:
        arguments.append(_TRANSACTIONS)
    async with connections.admin() as connection:
        found = (await catalog.find(connection, owner.name)).require(owner)
    accounts = [account for account in (*found.logins, *found.users) if account not in found.retired]
    async with (
        helpers.helping(connections, tenant, helpers.LOAD) as helper,
        environment(
            connections.address, database=tenant.name, user=helper.name, password=helper.password, settings=_SESSION
        ) as environ,
        RunningTool(folder / "pg_restore", arguments, environ, reads=True) as running,
    ):
        loadable = _Loadable(tenant.name, owner.name, accounts)
        await _feed(running, loadable, chunks)
        if await running.end() != 0:
            await answering(connections, running.errors)
            why = said(running.errors, "pg_restore was ended, or took too much memory")
            if any(sign in running.errors for sign in _LACKING):
                raise HostFull(why)
            raise LoadRefused(why)
        if loadable.of_accounts:
            # By the administrator, as what new users may read is: the tenant is no member of its accounts. They run
            # nothing.
            async with connections.admin_in(tenant.name) as inside:
                for statement in loadable.of_accounts:
                    await inside.execute(statement)


async def _feed(running: ToolProcess, archive: Archive, chunks: AsyncIterator[bytes]) -> None:
    """Gives the dump to the tool until it takes no more, or there is nothing more. Raises what `chunks` raises."""
    try:
        async for chunk in chunks:
            if piece := archive.feed(chunk):
                await running.write(piece)
        archive.finish()
    except ConnectionError:  # it has ended, and says why
        return
    except ArchiveInvalid as error:
        raise LoadRefused(str(error)) from error
    await running.end_input()
