"""A wrong setting is refused by its name, before anything is written."""

import os
from pathlib import Path

import pytest

from app.backups.storage.location import Bucket, Folder, client, location
from app.core.settings import InvalidSettings, Settings
from tests.support.backups import folder_store
from tests.support.together import together


def test_the_default_is_a_folder_of_the_installation() -> None:
    assert location(Settings(home=Path("/srv/headwater"))) == Folder(Path("/srv/headwater/backups"))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("file:///srv/backups", Folder(Path("/srv/backups"))),
        ("file://localhost/srv/a%20folder", Folder(Path("/srv/a folder"))),
        ("s3://bucket", Bucket("bucket", "")),
        ("s3://bucket/some/prefix/", Bucket("bucket", "some/prefix")),
    ],
)
def test_places(text: str, place: Folder | Bucket) -> None:
    assert location(Settings(backup_store=text)) == place


@together(
    "text",
    [
        "/srv/backups",
        "file://srv/backups",
        "file:///",
        "gs://bucket",
        "s3://",
        "s3:///prefix",
        "s3://key:secret@bucket/",
        "s3://b/p?x=1",
    ],
)
def test_other_places_are_refused(text: str) -> None:
    with pytest.raises(InvalidSettings, match="HEADWATER_BACKUP_STORE") as refused:
        location(Settings(backup_store=text))
    assert "secret@" not in str(refused.value)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSettings, match="HEADWATER_BACKUP_STORE"):
        folder_store(tmp_path / "file" / "below")


def test_a_new_folder_is_private(tmp_path: Path) -> None:
    folder_store(tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("recipient", ["age1", "ssh-ed25519 AAAA", "x"])
def test_a_wrong_recipient_is_refused(tmp_path: Path, recipient: str) -> None:
    with pytest.raises(InvalidSettings, match="HEADWATER_BACKUP_AGE_RECIPIENT"):
        folder_store(tmp_path, backup_age_recipient=recipient)


@pytest.mark.parametrize("text", ["", "# nothing\n", "AGE-SECRET-KEY-1\n"])
def test_wrong_identities_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "identities").write_text(text)
    with pytest.raises(InvalidSettings, match="HEADWATER_BACKUP_AGE_IDENTITY_FILE") as refused:
        folder_store(tmp_path / "store", backup_age_identity_file=tmp_path / "identities")
    assert "SECRET-KEY-1\n" not in str(refused.value)


def test_an_empty_aws_variable_counts_as_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_REGION"):
        monkeypatch.setenv(name, "")
    client(Bucket("bucket", ""), 1)
    assert "AWS_ENDPOINT_URL" not in os.environ
