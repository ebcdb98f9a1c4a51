"""MySQL statements that no blueprint may hold, each with its reason, which says what to do."""

from app.dialects.mysql.scripts.reader import Reader

TRANSACTION = "{kind} controls the transaction; MySQL commits each change to tables by itself, so remove the statement"
DATABASES = "{kind} is about databases; a blueprint is applied inside one database, so remove the statement"
ROLES = "{kind} is about users, roles and rights, which blueprints don't manage; remove the statement"
SERVER = "{kind} needs rights over the server, which a database's user doesn't have"
FILES = "{kind} reads or writes files of the server, which blueprints may not"
EVENTS = "{kind} is about events, which hosts don't run; run the statement from outside"
UNSEEN = "{kind} runs SQL that is put together while it runs and can't be judged; write the statement itself"
CLIENT = "{kind} is a command of the mysql client, not SQL; remove the line"
LOST_OCTETS = (
    "this binary string has lost octets that are no text in UTF-8 (U+FFFD stands for them); write it in "
    "hexadecimal (mariadb-dump and mysqldump with --hex-blob do), or send the octets themselves in base64"
)
ROUTINE = "{kind} has a meaning inside routines only"

_BY_VERB = {
    "begin": TRANSACTION,
    "commit": TRANSACTION,
    "rollback": TRANSACTION,
    "savepoint": TRANSACTION,
    "release": TRANSACTION,
    "xa": TRANSACTION,
    "use": DATABASES,
    "grant": ROLES,
    "revoke": ROLES,
    "load": FILES,
    "import": FILES,
    "flush": SERVER,
    "reset": SERVER,
    "purge": SERVER,
    "change": SERVER,
    "stop": SERVER,
    "shutdown": SERVER,
    "restart": SERVER,
    "kill": SERVER,
    "install": SERVER,
    "uninstall": SERVER,
    "binlog": SERVER,
    "cache": SERVER,
    "clone": SERVER,
    "backup": SERVER,
    "prepare": UNSEEN,
    "execute": UNSEEN,
    "deallocate": UNSEEN,
    "signal": ROUTINE,
    "resignal": ROUTINE,
    "get": ROUTINE,
    "return": ROUTINE,
    "declare": ROUTINE,
    "source": CLIENT,
    "\\": CLIENT,
    "connect": CLIENT,
    "system": CLIENT,
    "tee": CLIENT,
    "notee": CLIENT,
    "charset": CLIENT,
    "pager": CLIENT,
    "handler": "{kind} keeps a table open in the session, which ends with the blueprint; use SELECT",
}
KNOWN_ELSEWHERE = ("EXECUTE ", "DEALLOCATE ")
"""Statements that PostgreSQL has too, where they can be judged."""
_BY_OBJECT = {
    "database": DATABASES,
    "schema": DATABASES,
    "user": ROLES,
    "role": ROLES,
    "event": EVENTS,
    "server": SERVER,
    "tablespace": SERVER,
    "undo": SERVER,
    "logfile": SERVER,
    "resource": SERVER,
    "instance": SERVER,
    "package": SERVER,
    "library": SERVER,
    "prepare": UNSEEN,
}


def refusal(reader: Reader) -> str | None:
    """Why no blueprint may hold the statement, by its leading words; None when it may, or is unknown."""
    verb = reader.word()
    if verb == "start":
        reason = TRANSACTION if reader.word(1) == "transaction" else SERVER
        return reason.format(kind=f"START {reader.word(1).upper()}".strip())
    if verb in _BY_VERB:
        return _BY_VERB[verb].format(kind=_leading(reader))
    if verb in ("create", "alter", "drop", "rename"):
        item = _object(reader)
        if item in _BY_OBJECT:
            return _BY_OBJECT[item].format(kind=f"{verb.upper()} {item.upper()}")
    return None


def _object(reader: Reader) -> str:
    if reader.word(1) == "default":  # ALTER DEFAULT PRIVILEGES FOR ROLE …, which is PostgreSQL's
        return ""
    for word in reader.words[1:12]:
        if word in _BY_OBJECT:
            return word
        if word in ("table", "view", "procedure", "function", "trigger", "index", "sequence"):
            return ""
    return ""


def _leading(reader: Reader) -> str:
    if reader.word() == "load":
        return f"LOAD {reader.word(1).upper()}"
    return reader.item(0).text.upper() if reader.word() != "\\" else "\\" + reader.word(1)
