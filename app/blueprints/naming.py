"""Slugs: a blueprint's name as an identifier, unique among its team's."""

import re
import unicodedata

_LONGEST = 60


def slug_of(name: str) -> str:
    """Lowercase ASCII letters, digits and hyphens; `blueprint` for a name that has none of them."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:_LONGEST].rstrip("-") or "blueprint"


def free_slug(name: str, taken: set[str]) -> str:
    """The name's slug, numbered from 2 on when others have it."""
    slug, number = slug_of(name), 1
    candidate = slug
    while candidate in taken:
        number += 1
        candidate = f"{slug}-{number}"
    return candidate
