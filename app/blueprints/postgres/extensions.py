"""Which PostgreSQL extensions a blueprint may ask for."""

TRUSTED = frozenset(
    {
        "btree_gin",
        "btree_gist",
        "citext",
        "cube",
        "dict_int",
        "fuzzystrmatch",
        "hstore",
        "intarray",
        "isn",
        "lo",
        "ltree",
        "pg_trgm",
        "pgcrypto",
        "plpgsql",
        "seg",
        "tablefunc",
        "tcn",
        "tsm_system_rows",
        "tsm_system_time",
        "unaccent",
        "uuid-ossp",
    }
)
"""What PostgreSQL itself lets the owner of a database install. Procedural languages are trusted too, and aren't here:
engine hosts don't offer them."""


def refusal(name: str) -> str | None:
    """Why a blueprint may not create the extension; None when it may."""
    if name in TRUSTED:
        return None
    return f"the extension {name} needs a superuser; blueprints may create these: {', '.join(sorted(TRUSTED))}"
