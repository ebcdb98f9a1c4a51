"""Accounts of databases on a host: those that no row names, and users that have none."""

from collections.abc import Iterable
from uuid import UUID

import msgspec

from app.core.secrets import SecretBox
from app.credentials import accounts
from app.credentials.accounts import AccountFaults
from app.databases import credentials
from app.databases.hosted import RecordedDatabase
from app.engines.base import EngineAdapter, EngineError
from app.store.locks import LockBusy, LockLost
from app.upkeep.reconcile.findings import Violation

UNKNOWN = "account_unknown"
MISSING = "user_missing"
ACCOUNT_RULES = (UNKNOWN, MISSING)
_MAX = 20
"""The maximum of databases that are repaired in one run."""


class AccountCheck(msgspec.Struct, frozen=True):
    violations: list[Violation]
    """One for each rule and database."""
    skipped: list[UUID]
    """Databases that can't be compared now: they are left to the next run."""


async def check_accounts(adapter: EngineAdapter, databases: Iterable[RecordedDatabase]) -> AccountCheck:
    checked = AccountCheck([], [])
    for database in await credentials.ever_changed([one.uuid for one in databases]):
        try:
            faults = await accounts.find_faults(adapter, database)
        except (EngineError, LockBusy, LockLost):
            checked.skipped.append(database)
        else:
            checked.violations.extend(_violations(str(database), faults))
    return checked


async def repair_accounts(box: SecretBox, adapter: EngineAdapter, violations: Iterable[Violation]) -> list[str]:
    """Removes unknown accounts, and makes missing ones. Returns a sentence for each database, failures included."""
    subjects = list(dict.fromkeys(one.subject for one in violations))
    return [await _repair(box, adapter, subject) for subject in subjects[:_MAX]]


async def _repair(box: SecretBox, adapter: EngineAdapter, subject: str) -> str:
    try:
        faults = await accounts.repair(box, adapter, UUID(subject))
    except (EngineError, LockBusy, LockLost) as fault:
        return f"Couldn't put the accounts of {subject} right: {fault}."
    return f"Removed {len(faults.unknown)} and made {len(faults.missing)} accounts of database {subject}."


def _violations(subject: str, faults: AccountFaults) -> list[Violation]:
    found = []
    if faults.unknown:
        found.append(
            Violation(rule=UNKNOWN, subject=subject, detail=f"has accounts of no user: {_listed(faults.unknown)}")
        )
    if faults.missing:
        found.append(
            Violation(rule=MISSING, subject=subject, detail=f"lacks accounts of users: {_listed(faults.missing)}")
        )
    return found


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
