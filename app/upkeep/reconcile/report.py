"""What a consistency check found."""

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it must be."""

    rule: str
    subject: str
    """What it is about: a database's uuid, a name on a host, a key."""
    detail: str
    name: str | None = None
    """Of the database that it is about, where it is one of ours."""
    team: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    violations: list[Violation]
    notes: list[Violation]
    """What is as it may be, and worth knowing: it doesn't count."""
