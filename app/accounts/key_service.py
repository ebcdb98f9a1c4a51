"""What keys do with other keys of their user, what people do with theirs, and what both do with keys for teams whose
admin the user is. Every change belongs in the request's transaction.

A key gives what it has and no more. What it makes of another key is checked as a whole: if each limit were compared by
itself, a key for much in one database and one for little in all of them would together make one for much in all.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from app.accounts.key_schemas import CreateKey, KeyChange, KeyControlsChange
from app.audit.drafts import note, note_difference
from app.auth import key_records, keys, members, standing
from app.auth.authority import Authority, excess
from app.auth.key_records import KeyRecord
from app.auth.principal import Principal
from app.auth.roles import Role, roles_that_may
from app.auth.scopes import OPERATOR_SCOPES, Scope
from app.auth.users import check_name
from app.core.clock import utc_now
from app.core.errors import (
    ApiKeyExpired,
    ExceedsOwnKey,
    InsufficientRole,
    InvalidApiKey,
    InvalidField,
    KeyForSomeDatabases,
    KeyLimitReached,
    NotAMember,
    NotFound,
    require_found,
)
from app.databases import records as databases

WHAT = "API key"
_DEFAULT_RATE = keys.KeyControls().requests_per_minute
"""Requests a minute of a key that a person makes without saying how many."""
_Value = TypeVar("_Value")
_ADMINS = (Role.ADMIN, Role.OWNER)
_MINTING = roles_that_may([Scope.KEYS_WRITE])


async def mint(principal: Principal, request: CreateKey, *, most: int) -> tuple[KeyRecord, str]:
    """Mints a key; returns it and its text. `most` is how many keys a user may have. Raises `InvalidField`,
    `ExceedsOwnKey`, `InsufficientRole`, `NotAMember` or `KeyLimitReached`."""
    own = await _own(principal)
    check_name(request.name)
    default = own if principal.session_id is None else msgspec.structs.replace(own, requests_per_minute=_DEFAULT_RATE)
    wanted = await _checked(principal, own, own, _changed(default, request, request.permissions))
    if (field := excess(wanted, own)) is not None:
        raise ExceedsOwnKey(field)
    if await key_records.count_unrevoked(principal.user_id) >= most:
        raise KeyLimitReached(most)
    minted_by = principal.key_id if principal.session_id is None else None
    made = await keys.insert_key(principal.user_id, request.name, wanted, minted_by=minted_by)
    note(team_id=wanted.team_id)
    note_difference({}, {field: value for field, value in _noted(request.name, wanted).items() if value})
    return await _managed(principal, made.id), made.api_key


async def change(principal: Principal, key_id: int, request: KeyChange) -> KeyRecord:
    """Changes a key. Raises `NotFound`, also for one that is revoked, `InvalidField`, `InsufficientRole`, `NotAMember`,
    or `ExceedsOwnKey` for a key that would get more than it has, and more than the asking key has."""
    own = await _own(principal)
    record = await _unrevoked(principal, key_id)
    if request.name is not UNSET:
        check_name(request.name)
    wanted = await _checked(principal, own, record, _changed(record, request, request.permissions))
    if excess(wanted, record) is not None and (field := excess(wanted, own)) is not None:
        raise ExceedsOwnKey(field)
    name = _given(request.name, record.name)
    await key_records.set_limits(record.id, name, wanted)
    note(team_id=wanted.team_id or record.team_id)
    note_difference(_noted(record.name, record), _noted(name, wanted))
    return await _managed(principal, record.id)


async def rotate(principal: Principal, key_id: int, overlap_seconds: float) -> tuple[KeyRecord, str]:
    """Gives the key a new text. The caller learns it, so the key must be within the asking one. Raises `NotFound`, also
    for one that is revoked, or `ExceedsOwnKey`."""
    own = await _own(principal)
    record = await _unrevoked(principal, key_id)
    if record.id != principal.key_id and (field := excess(record, own)) is not None:
        raise ExceedsOwnKey(field)
    api_key = await key_records.replace_secret(record.id, overlap_seconds)
    note(team_id=record.team_id)
    return await _managed(principal, record.id), api_key


async def revoke(principal: Principal, key_id: int, *, minted: bool) -> tuple[KeyRecord, list[int]]:
    """Revokes a key, and with `minted` all keys that it has minted, those that they have minted, and so on. Returns
    which these were. A key that was revoked before stays so. An admin of a team ends somebody else's key for that team:
    it is revoked where it is for that team alone. Raises `NotFound`."""
    theirs = await _administered(principal, key_id)
    if theirs is not None:
        return await _end(principal, theirs, minted=minted)
    await _own(principal)
    record = await _managed(principal, key_id)
    await keys.revoke_key(record.id)
    also = await key_records.revoke_minted(record.id) if minted else []
    note(team_id=record.team_id)
    return await _managed(principal, record.id), sorted(also)


async def get(principal: Principal, key_id: int) -> KeyRecord:
    """Raises `NotFound`."""
    theirs = await _administered(principal, key_id)
    if theirs is None:
        return await _managed(principal, key_id)
    [shown] = await _shown_to(principal, await _administered_teams(principal), [theirs])
    return shown


async def list_page(principal: Principal, *, starting_after: int | None, limit: int) -> tuple[list[KeyRecord], bool]:
    """A page, newest first, and whether more follows. Raises `InvalidField` for a cursor that is none of the keys'."""
    if starting_after is not None and await _find_managed(principal, starting_after) is None:
        raise InvalidField("starting_after", "This is not the id of an API key of yours.")
    if principal.session_id is None:
        page = await key_records.list_managed(principal.key_id, after=starting_after, limit=limit + 1)
    else:
        page = await key_records.list_of_user(principal.user_id, after=starting_after, limit=limit + 1)
    return page[:limit], len(page) > limit


async def list_team_page(
    principal: Principal, team_id: int, *, starting_after: int | None, limit: int
) -> tuple[list[KeyRecord], bool]:
    """The same for all keys that are for this team. Raises `InsufficientRole` too, and `InvalidField` for a team that
    is not the caller's."""
    if principal.databases is not None:
        raise KeyForSomeDatabases
    principal.check_role(principal.owning_team(team_id, WHAT), _ADMINS)
    if starting_after is not None and await key_records.find_of_teams([team_id], starting_after) is None:
        raise InvalidField("starting_after", "This is not the id of an API key that is for this team.")
    page = await key_records.list_of_team(team_id, after=starting_after, limit=limit + 1)
    return await _shown_to(principal, [team_id], page[:limit]), len(page) > limit


async def _shown_to(principal: Principal, teams: list[int], records: list[KeyRecord]) -> list[KeyRecord]:
    """The keys as an admin of these teams sees them: of other people's keys that are for more teams, nothing of the
    other teams."""
    wide = [one for one in records if one.team_id is None and one.user_id != principal.user_id]
    named = {uuid for one in wide for uuid in one.databases or ()}
    owned = await databases.which_are_owned(sorted(named), teams) if named else set()
    narrowed = {
        one.id: msgspec.structs.replace(
            one,
            databases=None if one.databases is None else [uuid for uuid in one.databases if uuid in owned],
            ended_teams=[team for team in one.ended_teams if team in teams],
        )
        for one in wide
    }
    return [narrowed.get(one.id, one) for one in records]


async def _administered(principal: Principal, key_id: int) -> KeyRecord | None:
    """The key, if it is somebody else's and for a team whose admin the caller is."""
    teams = await _administered_teams(principal)
    record = await key_records.find_of_teams(teams, key_id) if teams else None
    return None if record is None or record.user_id == principal.user_id else record


async def _administered_teams(principal: Principal) -> list[int]:
    """The caller's teams in which they are an admin, as roles are now."""
    if principal.databases is not None or not set(_ADMINS).intersection(principal.team_roles):
        return []
    roles = await members.roles_of(principal.user_id)
    return [team for team in principal.team_ids if roles.get(team) in _ADMINS]


async def _end(principal: Principal, record: KeyRecord, *, minted: bool) -> tuple[KeyRecord, list[int]]:
    """Ends a key for the teams whose admin the caller is, and no other."""
    await key_records.lock_user(record.user_id)
    await standing.expect(principal, None)
    teams = await _administered_teams(principal)
    descendants = await key_records.minted_by(record.id) if minted else []
    ended = [key for key in descendants if await _end_one(teams, key)]
    places = await members.roles_of(record.user_id)
    note(team_id=next((team for team in teams if team in places and record.is_for(team)), None))
    await _end_one(teams, record.id)
    [shown] = await _shown_to(principal, teams, [require_found(await key_records.find(record.id), WHAT)])
    return shown, ended


async def _end_one(teams: list[int], key_id: int) -> bool:
    """Ends a key for these teams. Returns False for one that is for none of them, or was revoked before."""
    record = await key_records.find_of_teams(teams, key_id)
    if record is None or record.revoked_at is not None:
        return False
    if record.team_id is not None:
        await keys.revoke_key(key_id)
        return True
    places = await members.roles_of(record.user_id)
    for team in teams:
        if team in places and record.is_for(team):
            await members.end_keys(team, record.user_id, key_id)
    return True


async def _own(principal: Principal) -> Authority:
    """What the asking key, or the person who is signed in, may give now: since it was let in it may have been changed
    or revoked, or have got another text, as a key that leaked. Nobody else changes its user's keys until the end of the
    transaction. Raises `ApiKeyExpired`, and what `standing.expect` does."""
    await key_records.lock_user(principal.user_id)
    if principal.session_id is not None:
        await standing.expect(principal, None)
        return _of_person(principal)
    own = await key_records.find_with_text(principal.key_id, principal.key_hash)
    if own is None or own.revoked_at is not None:
        raise InvalidApiKey("This API key is unknown or revoked.")
    if own.expired:
        raise ApiKeyExpired("This API key has expired.")
    await standing.expect(principal, None)
    return own


def _of_person(principal: Principal) -> Authority:
    """All that the person's roles allow, at the rate of their session: a team's limits are not widened by keys."""
    return Authority(
        scopes=principal.scopes,
        requests_per_minute=principal.requests_per_minute,
        monthly_quota=None,
        allowed_ips=[],
        inactive_ttl_days=None,
        expires_at=None,
        team_id=None,
        databases=None,
    )


def _noted(name: str, limits: Authority) -> dict[str, Any]:
    """What the audit log has of a key's limits. An event is one team's: of a key for several it says how many
    databases, not which."""
    shown: dict[str, Any] = {"name": name}
    for field in Authority.__struct_fields__:
        if field != "ended_teams":
            shown[field] = getattr(limits, field)
    if limits.team_id is None and limits.databases is not None:
        shown["databases"] = len(limits.databases)
    return shown


async def _find_managed(principal: Principal, key_id: int) -> KeyRecord | None:
    if principal.session_id is not None:
        return await key_records.find_of_user(principal.user_id, key_id)
    return await key_records.find_managed(principal.key_id, key_id)


async def _managed(principal: Principal, key_id: int) -> KeyRecord:
    return require_found(await _find_managed(principal, key_id), WHAT)


async def _unrevoked(principal: Principal, key_id: int) -> KeyRecord:
    record = await _managed(principal, key_id)
    if record.revoked_at is not None:
        raise NotFound(WHAT)
    return record


def _changed(present: Authority, request: CreateKey | KeyChange, scopes: list[str] | UnsetType) -> Authority:
    """These limits, with what the request gives in their place."""
    controls: KeyControlsChange = request.controls
    return Authority(
        scopes=list(dict.fromkeys(_given(scopes, present.scopes))),
        requests_per_minute=_given(controls.requests_per_minute, present.requests_per_minute),
        monthly_quota=_given(controls.monthly_quota, present.monthly_quota),
        allowed_ips=_given(controls.allowed_ip_list, present.allowed_ips),
        inactive_ttl_days=_given(controls.inactive_ttl_days, present.inactive_ttl_days),
        expires_at=_given(request.expires_at, present.expires_at),
        team_id=_given(request.team_id, present.team_id),
        databases=_given(request.databases, present.databases),
        ended_teams=present.ended_teams,
    )


def _given(value: _Value | UnsetType, otherwise: _Value) -> _Value:
    return otherwise if isinstance(value, UnsetType) else value


async def _checked(principal: Principal, own: Authority, present: Authority, wanted: Authority) -> Authority:
    """The limits as they are stored: what is new is checked, and the roles of the user as they are now. Raises
    `InvalidField`, `InsufficientRole` or `NotAMember`, and `ExceedsOwnKey` for an operator's scopes."""
    places = {team: role for team, role in (await members.roles_of(principal.user_id)).items() if own.is_for(team)}
    _check_roles(places, own, present, wanted)
    known = [scope.value for scope in Scope]
    for scope in wanted.scopes:
        if scope not in known:
            raise InvalidField("permissions", f"{scope[:100]!r} is no scope; the scopes are {', '.join(known)}.")
    kept = [] if present is own else present.scopes
    if not principal.operator and OPERATOR_SCOPES.intersection(wanted.scopes).difference(kept):
        raise ExceedsOwnKey("permissions")
    networks = keys.known_networks(wanted.allowed_ips, "controls.allowed_ip_list")
    if wanted.expires_at is not None and wanted.expires_at != present.expires_at:
        keys.check_expiry(wanted.expires_at)
        if wanted.expires_at <= utc_now():
            raise InvalidField("expires_at", "This time has passed.")
    await _check_databases(principal, list(places), present, wanted)
    return msgspec.structs.replace(wanted, allowed_ips=networks)


def _check_roles(places: dict[int, Role], own: Authority, present: Authority, wanted: Authority) -> None:
    """`places` are the teams that the asking key is for, with its user's roles."""
    if not places:
        raise NotAMember(None)
    if wanted.team_id is not None and wanted.team_id not in places:
        if wanted.team_id == present.team_id or wanted.team_id in own.ended_teams:
            raise NotAMember(wanted.team_id)
        raise InvalidField("team_id", "This is not a team of yours.")
    concerned = places if wanted.team_id is None else {wanted.team_id: places[wanted.team_id]}
    if not _MINTING.intersection(concerned.values()):
        team_id, role = next(iter(concerned.items()))
        raise InsufficientRole(role, [one for one in Role if one in _MINTING], team_id)


async def _check_databases(principal: Principal, own_teams: list[int], present: Authority, wanted: Authority) -> None:
    new = set(wanted.databases or ()) - set(present.databases or ())
    teams = own_teams if wanted.team_id is None else [wanted.team_id]
    reached = {uuid for uuid in new if principal.reaches(uuid)}
    unknown = new - await databases.which_are_owned(sorted(reached), teams)
    if unknown:
        raise InvalidField("databases", f"{min(unknown)} is no database of yours.")
