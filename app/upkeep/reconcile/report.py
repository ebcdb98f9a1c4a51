"""The result of a consistency check."""

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One violated rule."""

    rule: str
    subject: str
    """A database's uuid, a name on a host, or a key."""
    detail: str
    name: str | None = None
    """The name of the database, if it is one of ours."""
    team: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    violations: list[Violation]
    notes: list[Violation]
    """Worth knowing, but no violations."""
