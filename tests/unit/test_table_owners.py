"""Each table's statements stand in the folder that owns the table. Decision 27.

Read off the source: every string that is a statement, or a part of one, with module-level strings put into the
f-strings that name them.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.together import together

ROOT = Path(__file__).parents[2]
OWNERS = {
    "api_key_usage": "app/auth",
    "api_keys": "app/auth",
    "audit_events": "app/audit",
    "audit_leaves": "app/audit",
    "audit_refusals": "app/audit",
    "audit_seals": "app/audit",
    "backup_policies": "app/backups",
    "backups": "app/backups",
    "blueprint_applications": "app/blueprints/applications",
    "blueprint_statements": "app/blueprints/applications",
    "blueprint_versions": "app/blueprints",
    "blueprints": "app/blueprints",
    "connection_holds": "app/quotas",
    "credential_rotations": "app/credentials",
    "database_labels": "app/databases",
    "database_usage": "app/quotas",
    "database_users": "app/credentials",
    "databases": "app/databases",
    "engine_hosts": "app/hosts",
    "events": "app/outbox",
    "findings": "app/upkeep",
    "host_connections": "app/hosts",
    "idempotency_keys": "app/web",
    "installation": "app/store",
    "invitations": "app/auth",
    "memberships": "app/auth",
    "metric_five_minutes": "app/usage/metrics",
    "metric_gaps": "app/usage/metrics",
    "metric_hours": "app/usage/metrics",
    "metric_readings": "app/usage/metrics",
    "metric_rollups": "app/usage/metrics",
    "metric_samples": "app/usage/metrics",
    "oidc_subjects": "app/accounts/sessions",
    "operations": "app/operations",
    "passkey_challenges": "app/accounts/sessions",
    "passkeys": "app/accounts/sessions",
    "pool_targets": "app/databases/pool",
    "query_executions": "app/queries",
    "query_readers": "app/queries",
    "restorations": "app/backups",
    "session_usage": "app/auth",
    "sessions": "app/auth",
    "sign_in_attempts": "app/accounts/sessions",
    "sign_in_links": "app/accounts/sessions",
    "teams": "app/auth",
    "usage_clock": "app/usage",
    "usage_days": "app/usage",
    "usage_meters": "app/usage",
    "usage_parts": "app/usage",
    "usage_periods": "app/usage",
    "users": "app/auth",
    "webhook_attempts": "app/webhooks",
    "webhook_deliveries": "app/webhooks",
    "webhook_endpoints": "app/webhooks",
    "webhook_secrets": "app/webhooks",
    "workflow_starts": "app/outbox",
}
PARTITIONED = {"audit_events", "audit_leaves"}
"""Made by the SQL of migrations alone."""
# What a folder's statements on its own tables may read beside them.
JOINS = {
    "app/blueprints/applications": {"blueprints", "databases"},
    "app/auth": {"backups", "databases"},
    "app/backups": {"databases", "engine_hosts", "operations", "restorations", "teams"},
    "app/blueprints": {"blueprint_applications"},
    "app/credentials": {"databases"},
    "app/databases": {"connection_holds", "database_usage", "database_users", "engine_hosts", "teams"},
    "app/hosts": {"databases", "installation"},
    "app/usage/metrics": {"databases"},
    "app/operations": {"databases", "teams"},
    "app/outbox": {"databases", "teams", "webhook_deliveries"},
    "app/databases/pool": {"databases", "engine_hosts"},
    "app/queries": {"databases", "engine_hosts", "installation", "teams"},
    "app/quotas": {"databases"},
    "app/usage": {"database_usage", "databases", "teams"},
    "app/webhooks": {"databases", "events", "teams", "workflow_starts"},
}
# They compare all tables with each other, or count all of them in one statement, and write none.
READ_EVERYTHING = {
    "app/upkeep/inventory/gauges.py",
    "app/upkeep/reconcile/operations.py",
    "app/upkeep/reconcile/records.py",
    "app/upkeep/reconcile/restarts.py",
}
# Their statements are for the engines' servers, for making the tables, and for the columns that owners name as sealed.
ELSEWHERE = ("app/engines/", "app/dialects/", "app/store/migrations/", "app/store/sealed.py")


_STATEMENT = re.compile(r"\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b")
_WRITTEN = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM)\s+(?:ONLY\s+)?(\w+)")
_READ = re.compile(r"\b(?:FROM|JOIN|USING)\s+(?:ONLY\s+)?(\w+(?:(?:\s+(?:AS\s+)?\w+)?\s*,\s*\w+)*)")
_UNKNOWN = re.compile(r"\b(?:INSERT INTO|UPDATE|FROM|JOIN|USING)\s+\0")


def faults(source: str, path: str) -> Iterator[str]:
    """What of a module stands in the wrong folder. `path` is relative to the repository."""
    folder = _owner_at(path)
    for line, text in _strings(ast.parse(source)):
        where = f"{path}:{line}"
        written = {table for table in _WRITTEN.findall(text) if table in OWNERS}
        mentioned = {word for names in _READ.findall(text) for word in re.findall(r"\w+", names)}
        read = {table for table in mentioned if table in OWNERS}
        yield from (f"{where} writes {table}" for table in sorted(written) if OWNERS[table] != folder)
        if _STATEMENT.match(text) and _UNKNOWN.search(text):
            yield f"{where} names a table that can't be read off the source"
        if path in READ_EVERYTHING:
            continue
        foreign = {table for table in read if OWNERS[table] != folder}
        yield from (f"{where} reads {table}" for table in sorted(foreign - JOINS.get(folder, set())))
        if foreign and foreign == read | written and _STATEMENT.match(text):
            yield f"{where} is a statement on others' tables alone"


def _owner_at(path: str) -> str:
    """The innermost folder above a module that owns tables, or else the one in `app`."""
    above = [parent.as_posix() for parent in Path(path).parents]
    return next((folder for folder in above if folder in OWNERS.values()), "/".join(path.split("/")[:2]))


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string but docstrings."""
    named = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inner
            and id(node) not in docs
        ):
            yield node.lineno, _text(node, named)


def _text(node: ast.expr, named: dict[str, ast.expr]) -> str:
    r"""With `\0` for what isn't known here."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, named) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, named)
    if isinstance(node, ast.Name) and node.id in named:
        return _text(named[node.id], named)
    return "\0"


def test_every_table_has_an_owner() -> None:
    source = "".join(path.read_text() for path in (ROOT / "app/store/tables").glob("*.py"))
    assert set(re.findall(r'tablename="(\w+)"', source)) | PARTITIONED == set(OWNERS)


def test_statements_stand_with_the_owner_of_their_table() -> None:
    modules = [path for folder in ("app", "activities", "workers") for path in sorted((ROOT / folder).rglob("*.py"))]
    paths = [path for path in modules if not path.relative_to(ROOT).as_posix().startswith(ELSEWHERE)]
    assert [fault for path in paths for fault in faults(path.read_text(), path.relative_to(ROOT).as_posix())] == []


def test_only_the_store_reads_rows_without_a_type() -> None:
    paths = [path for path in (ROOT / "app").rglob("*.py") if "app/store" not in path.as_posix()]
    untyped = re.compile(r"from app\.store\.session import [^\n]*\bfetch\b")
    assert [path.as_posix() for path in paths if untyped.search(path.read_text())] == []


@together(
    ("source", "fault"),
    [
        ('SQL = "UPDATE databases SET name = $1"', "writes databases"),
        ('SQL = f"DELETE FROM {TABLE}"\nTABLE = "teams"', "writes teams"),
        ('SQL = "WITH a AS (INSERT INTO events (id) VALUES (1)) SELECT 1 FROM webhook_endpoints"', "writes events"),
        ('SQL = "SELECT 1 FROM webhook_endpoints e, findings f"', "reads findings"),
        ('SQL = "SELECT 1 FROM events"', "is a statement on others' tables alone"),
        ('def run(table):\n    return f"SELECT 1 FROM {table}"', "can't be read off the source"),
    ],
)
def test_a_statement_in_the_wrong_folder_is_found(source: str, fault: str) -> None:
    assert [one for one in faults(source, "app/webhooks/wrong.py") if fault in one]


def test_a_join_that_is_listed_is_fine() -> None:
    assert not list(faults('SQL = "SELECT 1 FROM webhook_deliveries d JOIN events e ON true"', "app/webhooks/right.py"))
