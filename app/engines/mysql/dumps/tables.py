"""Which tables a dump has to hold, and whether they stayed the same ones until it had them."""

from collections.abc import Mapping

import msgspec

from app.engines.dumping import MOST_OBJECTS, DumpRefused
from app.engines.errors import shortened
from app.engines.mysql.connection import MySQLConnection
from app.engines.mysql.flavours import MARIADB
from app.engines.mysql.quoting import quote_text

BASE, SEQUENCE = "BASE TABLE", "SEQUENCE"
_VIEWS = ("VIEW", "SYSTEM VIEW")
_TABLES = "SELECT table_name, table_type, engine FROM information_schema.tables WHERE table_schema = %s LIMIT %s"
_LISTING = """
SELECT table_name, table_type FROM information_schema.tables
WHERE table_schema = '{database}' AND table_name IN ({names}) ORDER BY table_name
"""
# A renamed table keeps its id, and a snapshot doesn't keep its name. One that was made anew has another id, and the
# server refuses to read it in an older snapshot.
_IDS = "SELECT name, table_id FROM information_schema.{} WHERE name LIKE %s LIMIT %s"
_MOST_IDS = 3 * MOST_OBJECTS
"""The most ids that are read: each partition has its own."""


class TableList(msgspec.Struct, frozen=True):
    """The tables and sequences of a database by name, with their kinds."""

    kinds: Mapping[str, str]
    views: tuple[str, ...] = ()

    def listing(self, database: str) -> str:
        """A query for those of them that are still there, in place of `SHOW FULL TABLES`: what was made after the
        moment of a dump isn't part of it, and can't be read in its snapshot."""
        names = ", ".join(quote_text(name) for name in (*self.kinds, *self.views)) or "''"
        return _LISTING.format(database=database, names=names)

    @classmethod
    async def read(cls, connection: MySQLConnection, database: str, most: int = MOST_OBJECTS) -> "TableList":
        """Raises `DumpRefused` for a table that can't be dumped with the others at one moment, and for more than `most`
        tables and views."""
        rows = await connection.run(_TABLES, (database, most + 1))
        _check_number(len(rows), most, "tables and views")
        for name, kind, engine in rows:
            if kind in _VIEWS:
                continue
            if kind not in (BASE, SEQUENCE):
                raise DumpRefused(f"the table {named(name)} is a {shortened(kind.lower())} table, which a dump loses")
            if engine is not None and engine.lower() != "innodb":
                raise DumpRefused(
                    f"the table {named(name)} is kept by {shortened(str(engine))}, which has no snapshots: "
                    "ALTER TABLE ... ENGINE = InnoDB"
                )
        return cls(
            {name: kind for name, kind, _ in rows if kind not in _VIEWS},
            tuple(name for name, kind, _ in rows if kind in _VIEWS),
        )


async def table_ids(connection: MySQLConnection, database: str, most: int = _MOST_IDS) -> dict[int, str]:
    """InnoDB's ids of the tables, with the names that its files have. Raises `DumpRefused` for more than `most`."""
    source = "innodb_sys_tables" if connection.flavour is MARIADB else "innodb_tables"
    rows = await connection.run(_IDS.format(source), (f"{database}/%", most + 1))
    _check_number(len(rows), most, "tables and partitions")
    return {int(number): str(name) for name, number in rows}


def check_names_kept(before: Mapping[int, str], after: Mapping[int, str]) -> None:
    """Raises `DumpRefused` if a table has another name now, or may have had one."""
    for number, name in before.items():
        if after.get(number) != name:
            change = "was renamed" if number in after else "was dropped, emptied or altered"
            raise DumpRefused(f"the table {named(name.partition('/')[2])} {change} while it was dumped")


def _check_number(found: int, most: int, what: str) -> None:
    """Raises `DumpRefused` for more than are kept in memory."""
    if found > most:
        raise DumpRefused(f"it has more than {most} {what}, the most that a dump may have")


def named(name: str) -> str:
    """A tenant's name of something, for a message."""
    return repr(shortened(name))
