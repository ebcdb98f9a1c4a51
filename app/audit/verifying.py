"""Whether the events are those that were sealed, read off an export alone."""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from app.audit.chain import GENESIS, Leaf, Seal, hash_of, leaf_of, unpack

MOST_FAULTS = 1000
"""More are counted, not reported."""


class Fault(msgspec.Struct, frozen=True):
    """`what` is wrong with `where`, an event or a seal."""

    what: str
    where: str
    detail: str


class Verifier:
    """Takes an export's lines one by one. `heads` are seals' hashes that are known from elsewhere, by the seals'
    numbers: each of them has to be there. An event that is older than `unsealed` and is not sealed is a fault."""

    def __init__(self, heads: Mapping[int, str] | None = None, *, unsealed: timedelta) -> None:
        self.faults: list[Fault] = []
        self.events = self.seals = self.dropped = self.waiting = self.unlisted = 0
        self.newest: Seal | None = None
        self.oldest_waiting: datetime | None = None
        self._heads = dict(heads or {})
        self._longest = unsealed
        self._made_at: datetime | None = None
        self._kept_since: datetime | None = None
        self._previous = (0, GENESIS)
        self._section: list[Leaf] = []

    def take(self, line: Mapping[str, Any]) -> None:
        """Takes the next line. Raises `ValueError` for what is no line of an export."""
        fields = dict(line)
        try:
            kind = fields.pop("record")
            if kind == "export":
                self._made_at = datetime.fromisoformat(fields["at"])
                self._kept_since = datetime.fromisoformat(fields["kept_since"])
            elif kind == "event":
                self._section.append(leaf_of(fields))
                self.events += 1
            elif kind == "seal":
                self._take_seal(fields)
            else:
                raise ValueError(f"{kind!r} is no kind of line")
        except (KeyError, TypeError, msgspec.ValidationError) as fault:
            raise ValueError(f"the line can't be read: {fault}") from None

    def finish(self) -> None:
        """Ends the verification, after the last line."""
        if self._made_at is None or self._kept_since is None:
            raise ValueError("the first line of an export is missing")
        self.waiting = len(self._section)
        self.oldest_waiting = min((leaf.at for leaf in self._section), default=None)
        for leaf in self._section:
            if self._made_at - leaf.at > self._longest:
                age = (self._made_at - leaf.at).total_seconds()
                self._fault("unsealed", f"event {leaf.id}", f"it is not sealed after {age:.0f} seconds")
        for number, digest in sorted(self._heads.items()):
            self._fault("cut off", f"seal {number}", f"it is gone; its hash was {digest}")

    def _take_seal(self, fields: dict[str, Any]) -> None:
        encoded = fields.pop("leaves")
        seal = _seal(fields)
        self.seals += 1
        self._check_link(seal)
        section, self._section = self._section, []
        if encoded is None:
            if self._kept_since is None or seal.at >= self._kept_since:
                self._fault("removed", f"seal {seal.id}", "its leaves are gone, and they should be kept")
            for leaf in section:
                self._fault("inserted", f"event {leaf.id}", f"seal {seal.id} has no leaves that it could be among")
            self.dropped += seal.events
            return
        leaves = base64.b64decode(encoded, validate=True)
        if hashlib.sha256(leaves).digest() != seal.leaves_hash:
            self._fault("changed", f"seal {seal.id}", "its leaves are not those that it was made over")
        self._compare(seal, unpack(leaves), section)

    def _check_link(self, seal: Seal) -> None:
        number, digest = self._previous
        if seal.id != number + 1:
            self._fault("removed", f"seal {number + 1}", f"seal {number} is followed by seal {seal.id}")
        elif seal.previous != digest:
            self._fault("changed", f"seal {seal.id}", f"it doesn't continue seal {number}")
        if hash_of(seal) != seal.hash:
            self._fault("changed", f"seal {seal.id}", "its fields are not those that it was made over")
        known = self._heads.pop(seal.id, None)
        if known is not None and known != seal.hash.hex():
            self._fault("changed", f"seal {seal.id}", f"its hash was {known}")
        self._previous, self.newest = (seal.id, seal.hash), seal

    def _compare(self, seal: Seal, sealed: list[Leaf], found: list[Leaf]) -> None:
        if sealed == found and seal.events == len(sealed):
            return
        if seal.events != len(sealed):
            self._fault("changed", f"seal {seal.id}", f"it has {len(sealed)} leaves for {seal.events} events")
        by_id = {leaf.id: leaf for leaf in sealed}
        there = {leaf.id for leaf in found}
        seen: set[int] = set()
        for leaf in found:
            where = f"event {leaf.id}"
            if leaf.id not in by_id:
                self._fault("inserted", where, f"seal {seal.id} was not made over it")
            elif leaf.id in seen:
                self._fault("inserted", where, "it is there twice")
            elif leaf.hash != by_id[leaf.id].hash:
                self._fault("changed", where, f"it is not the one that seal {seal.id} was made over")
            seen.add(leaf.id)
        for leaf in sealed:
            if leaf.id in there:
                continue
            if self._kept_since is not None and leaf.at < self._kept_since:
                self.dropped += 1
            else:
                self._fault("removed", f"event {leaf.id}", f"of {leaf.at.isoformat()}, in seal {seal.id}")
        self._check_order([leaf.id for leaf in sealed if leaf.id in there], [leaf.id for leaf in found])

    def _check_order(self, sealed: list[int], found: list[int]) -> None:
        known = set(sealed)
        present = list(dict.fromkeys(id for id in found if id in known))
        for expected, id in zip(sealed, present, strict=False):
            if expected != id:
                self._fault("reordered", f"event {id}", f"event {expected} comes first")
                return

    def _fault(self, what: str, where: str, detail: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(Fault(what, where, detail))
        else:
            self.unlisted += 1


def _seal(fields: Mapping[str, Any]) -> Seal:
    """Raises `KeyError`, `TypeError` or `ValueError`."""
    return Seal(
        id=int(fields["id"]),
        at=datetime.fromisoformat(fields["at"]),
        batch=int(fields["batch"]),
        last_id=int(fields["last_id"]),
        events=int(fields["events"]),
        leaves_hash=bytes.fromhex(fields["leaves_hash"]),
        previous=bytes.fromhex(fields["previous"]),
        hash=bytes.fromhex(fields["hash"]),
    )
