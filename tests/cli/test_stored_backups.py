"""`headwater backups verify-store|recover|restore`: our records and the store compared, and the store read alone."""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pyrage.x25519 import Identity

from app.backups.storage.manifest import BackupManifest
from app.backups.storage.store import BackupStore
from app.backups.stored import adopt, stored_record
from app.core.secrets import SecretBox
from app.store.session import fetch, fetch_scalar
from app.upkeep.reconcile.findings import Report
from app.upkeep.stored_backups import verify_store
from tests.cli.command import Headwater
from tests.support.backups import backed_up, chunks_of, files_of, folder_store, random_dump
from tests.support.store import store


@dataclass(frozen=True)
class Kept:
    """A store in a folder, and the installation whose it is."""

    command: Headwater
    folder: Path
    store: BackupStore
    dsn: str

    async def record(self, manifest: BackupManifest) -> None:
        """Makes our record of a backup that is in the store."""
        key = await self.store.stored_key(manifest.backup)
        async with store(self.dsn):
            team = await fetch_scalar(int, "SELECT min(id) FROM teams")
            assert await adopt(manifest, key.sealed, team)

    async def backup(self, dump: bytes = b"a dump") -> BackupManifest:
        """One that is complete, in the store and in our records."""
        manifest = await backed_up(self.store, dump)
        await self.record(manifest)
        return manifest

    async def set_status(self, backup: UUID, status: str) -> None:
        async with store(self.dsn):
            await fetch("UPDATE backups SET status = $2 WHERE uuid = $1", backup, status)

    async def lock(self, backup: UUID, time: timedelta) -> None:
        """As if Object Lock had kept it from being removed, for this time from now on."""
        async with store(self.dsn):
            await fetch("UPDATE backups SET locked_until = now() + $2::interval WHERE uuid = $1", backup, time)

    async def verified(self, *options: str) -> tuple[int, list[tuple[str, str]], list[tuple[str, str]]]:
        """The exit code, and rules and subjects of violations and notes."""
        result = await self.command.run("backups", "verify-store", *options, "--json")
        report: dict[str, Any] = json.loads(result.stdout)
        found = [[(one["rule"], one["subject"]) for one in report[kind]] for kind in ("violations", "notes")]
        return result.exit_code, *found  # type: ignore[return-value]


@pytest.fixture
async def kept(headwater: Headwater, control_dsn: str, tmp_path: Path) -> Kept:
    folder = tmp_path / "kept"
    async with store(control_dsn):
        await fetch("INSERT INTO teams (name, tier) VALUES ('one', 'free')")
    box = SecretBox.from_setting(headwater.settings["SECRET_KEYS"])
    return Kept(headwater.with_settings(BACKUP_STORE=folder.as_uri()), folder, folder_store(folder, box), control_dsn)


async def test_what_agrees(kept: Kept) -> None:
    await kept.backup()
    await kept.backup(random_dump(100_000))
    assert await kept.verified() == (0, [], [])
    assert await kept.verified("--deep") == (0, [], [])


async def test_a_record_without_objects(kept: Kept) -> None:
    lost = await kept.backup()
    await kept.store.delete(lost.backup)
    assert await kept.verified() == (1, [("backup_missing", str(lost.backup))], [])


async def test_a_record_whose_manifest_is_gone(kept: Kept) -> None:
    lost = await kept.backup()
    (kept.folder / str(lost.backup) / "manifest").unlink()
    assert await kept.verified() == (1, [("backup_missing", str(lost.backup))], [])


async def test_objects_without_a_record(kept: Kept) -> None:
    unknown = await backed_up(kept.store, b"a dump")
    assert await kept.verified() == (1, [("backup_unrecorded", str(unknown.backup))], [])


@pytest.mark.parametrize("status", ["deleted", "expired", "failed", "cancelled"])
async def test_what_should_be_gone(kept: Kept, status: str) -> None:
    manifest = await kept.backup()
    await kept.set_status(manifest.backup, status)
    assert await kept.verified() == (1, [("backup_astray", str(manifest.backup))], [])


async def test_what_object_lock_keeps_is_where_it_belongs(kept: Kept) -> None:
    manifest = await kept.backup()
    await kept.set_status(manifest.backup, "deleted")
    await kept.lock(manifest.backup, timedelta(hours=1))
    assert await kept.verified() == (0, [], [])
    await kept.lock(manifest.backup, timedelta(0))
    assert await kept.verified() == (1, [("backup_astray", str(manifest.backup))], [])


async def test_what_expires_while_it_is_read(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = await kept.backup()
    read = kept.store.check_part

    async def expiring(*arguments: Any) -> None:
        await read(*arguments)
        await fetch("UPDATE backups SET status = 'expired' WHERE uuid = $1", manifest.backup)
        await kept.store.delete(manifest.backup)

    monkeypatch.setattr(kept.store, "check_part", expiring)
    async with store(kept.dsn):
        assert await verify_store(kept.store, deep=True) == Report(ok=True, violations=[], notes=[])


async def test_what_is_under_way(kept: Kept) -> None:
    complete, begun = await kept.backup(), uuid4()
    await kept.set_status(complete.backup, "running")  # its manifest is written, its record not yet
    await kept.store.write(begun, kept.store.new_key(begun), chunks_of(b"a dump"))
    code, violations, [(rule, subject)] = await kept.verified()
    assert (code, violations, rule) == (0, [], "backup_object_stray")
    assert subject.startswith(str(begun))


async def test_a_part_of_another_size(kept: Kept) -> None:
    manifest = await kept.backup()
    part = kept.folder / str(manifest.backup) / manifest.parts[0].name
    part.write_bytes(part.read_bytes() + b"x")
    assert await kept.verified() == (1, [("backup_damaged", str(manifest.backup))], [])


async def test_a_changed_byte_shows_when_it_is_read(kept: Kept) -> None:
    manifest = await kept.backup()
    part = kept.folder / str(manifest.backup) / manifest.parts[0].name
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    assert (await kept.verified())[0] == 0
    assert await kept.verified("--deep") == (1, [("backup_damaged", str(manifest.backup))], [])


async def test_a_record_that_says_otherwise(kept: Kept) -> None:
    manifest = await kept.backup()
    async with store(kept.dsn):
        await fetch("UPDATE backups SET stored_bytes = 1")
    assert await kept.verified() == (1, [("backup_damaged", str(manifest.backup))], [])


async def test_a_store_that_is_gone_is_no_violation(kept: Kept) -> None:
    command = kept.command.with_settings(BACKUP_STORE="s3://no-such-bucket", BACKUP_STORE_TIMEOUT_SECONDS="1")
    await kept.backup()
    result = await command.run("backups", "verify-store", "--json")
    assert result.exit_code == 1
    assert result.stdout == ""


async def test_verifying_changes_nothing(kept: Kept) -> None:
    await kept.backup()
    before = files_of(kept.folder)
    await kept.verified("--deep")
    assert files_of(kept.folder) == before


async def test_the_store_alone_tells_what_there_is(kept: Kept) -> None:
    older = await backed_up(kept.store, b"a dump")
    damaged = await backed_up(kept.store, b"another")
    (kept.folder / str(damaged.backup) / damaged.parts[0].name).unlink()
    alone = Headwater({name: value for name, value in kept.command.settings.items() if name != "CONTROL_DSN"})
    listed = {one["uuid"]: one for one in await alone.json("backups", "recover")}
    assert listed.keys() == {str(older.backup), str(damaged.backup)}
    one = listed[str(older.backup)]
    assert (one["database"], one["team"], one["team_id"]) == ("orders of a tenant", "a team", 7)
    assert (one["state"], one["tables"], one["rows"], one["size_bytes"]) == ("whole", 1, 3, 6)
    assert one["consistent_at"] == "2026-11-22T12:00:00Z"
    assert "it is gone" in listed[str(damaged.backup)]["state"]
    assert "whole" in await alone.text("backups", "recover")


async def test_other_secret_keys_list_what_they_cannot_read(kept: Kept) -> None:
    manifest = await backed_up(kept.store, b"a dump")
    other = kept.command.with_settings(SECRET_KEYS="k9:" + "A" * 43 + "=")
    [one] = await other.json("backups", "recover")
    assert one["uuid"] == str(manifest.backup)
    assert "sealed with a key that is not in HEADWATER_SECRET_KEYS" in one["state"]


async def test_what_needs_an_identity(kept: Kept, tmp_path: Path) -> None:
    identity = Identity.generate()
    box = SecretBox.from_setting(kept.command.settings["SECRET_KEYS"])
    await backed_up(folder_store(kept.folder, box, backup_age_recipient=str(identity.to_public())), b"a dump")
    [one] = await kept.command.json("backups", "recover")
    assert (one["state"], one["database"]) == ("identity needed", "orders of a tenant")
    (tmp_path / "identity").write_text(str(identity))
    [one] = await kept.command.json("backups", "recover", "--identity", str(tmp_path / "identity"))
    assert one["state"] == "whole"


async def test_another_teams_backup_is_not_restored(kept: Kept) -> None:
    manifest = await kept.backup()
    other = await kept.command.json("users", "create", "--email", "ada@example.com", "--name", "Ada")
    team = str(other["team_id"])
    said = await kept.command.refusal("backups", "restore", str(manifest.backup), "--team", team)
    assert f"Team {team} has no such backup" in said


async def test_a_record_is_made_once(kept: Kept, own_store: None) -> None:
    team = await fetch_scalar(int, "INSERT INTO teams (name, tier) VALUES ('one', 'free') RETURNING id")
    manifest = await backed_up(kept.store, b"a dump")
    assert await adopt(manifest, b"key", team)
    assert not await adopt(manifest, b"another", team)
    record = await stored_record(manifest.backup)
    assert record is not None
    assert record.kept
    assert record.stored_bytes == manifest.stored_bytes
