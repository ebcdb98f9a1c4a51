"""`deploy/pin-images.sh`: what a registry says of each image goes to `.env`, where Compose finds it; all or none."""

import hashlib
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.deployment import compose

_DOCKER = """#!/bin/sh
[ "$1 $2 $3 $4 $5" = "buildx imagetools inspect --format {{.Manifest.Digest}}" ] || { echo "what is $*?" >&2; exit 64; }
echo "$6" >> "$ASKED"
case $6 in
    "$UNKNOWN") echo "ERROR: failed to resolve source metadata: not found" >&2; exit 1 ;;
    "$ODD") echo "<no value>" ;;
    *) printf 'sha256:'; printf '%s' "$6" | sha256sum | cut -d ' ' -f 1 ;;
esac
"""
"""Stands for Docker and the registry behind it, which are outside of this machine: a digest of the image's name."""
_IMAGES = {name: rest[1:] for name, rest in compose.variables().items() if name.endswith("_IMAGE")}
_BEFORE = "# mine\nSECRET_KEYS=k1:abc=\n\nOPENAI_API_KEY='a b'\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "deploy").mkdir()
    for name in ("docker-compose.yml", "deploy/pin-images.sh"):
        shutil.copy(compose.ROOT / name, tmp_path / name)
    (tmp_path / ".env").write_text(_BEFORE)
    (tmp_path / ".env").chmod(0o600)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(_DOCKER)
    (tmp_path / "bin/docker").chmod(0o755)
    return tmp_path


def _pin(project: Path, path: str | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    given = {
        "PATH": path if path is not None else f"{project / 'bin'}:{os.environ['PATH']}",
        "ASKED": str(project / "asked"),
        "UNKNOWN": "",
        "ODD": "",
    }
    argv = [shutil.which("sh") or "sh", str(project / "deploy/pin-images.sh")]
    return subprocess.run(argv, cwd="/", env=given | environ, capture_output=True, text=True, check=False)


def _digest(image: str) -> str:
    return f"sha256:{hashlib.sha256(image.encode()).hexdigest()}"


def _lines(project: Path) -> list[str]:
    return (project / ".env").read_text().splitlines()


def _pinned(images: dict[str, str]) -> set[str]:
    return {f"{name}={image}@{_digest(image)}" for name, image in images.items()}


def test_every_image_gets_its_digest_and_every_other_line_stays(project: Path) -> None:
    done = _pin(project)
    assert done.returncode == 0, done.stderr
    lines = _lines(project)
    assert lines[:4] == _BEFORE.splitlines()
    assert len(_IMAGES) > 5
    assert set(lines[4:]) == _pinned(_IMAGES)
    assert len(lines[4:]) == len(_IMAGES)
    assert stat.S_IMODE((project / ".env").stat().st_mode) == 0o600
    assert sorted((project / "asked").read_text().splitlines()) == sorted(set(_IMAGES.values()))


def test_compose_takes_what_is_pinned(project: Path) -> None:
    _pin(project)
    values = dict(line.split("=", 1) for line in _lines(project)[4:])
    for name, service in compose.services().items():
        wanted = service["build"]["args"]["PYTHON_IMAGE"] if name in compose.ours() else service["image"]
        assert "@sha256:" in compose.interpolated(wanted, values), name


def test_a_second_run_changes_nothing(project: Path) -> None:
    _pin(project)
    first = (project / ".env").read_bytes()
    assert _pin(project).returncode == 0
    assert (project / ".env").read_bytes() == first


def test_an_image_of_the_operators_own_choice_is_pinned_as_it_is(project: Path) -> None:
    (project / ".env").write_text("MYSQL_IMAGE=registry.example.com:5000/mysql:9.7.2@sha256:0000\n")
    done = _pin(project)
    assert done.returncode == 0, done.stderr
    assert set(_lines(project)) == _pinned(_IMAGES | {"MYSQL_IMAGE": "registry.example.com:5000/mysql:9.7.2"})
    said = f"MYSQL_IMAGE: .env has registry.example.com:5000/mysql:9.7.2, docker-compose.yml {_IMAGES['MYSQL_IMAGE']}"
    assert said in done.stderr


def test_a_line_without_its_end_stays_whole(project: Path) -> None:
    (project / ".env").write_text("NL_MODEL=x")
    assert _pin(project).returncode == 0
    assert "NL_MODEL=x" in _lines(project)


@pytest.mark.parametrize("failing", ["UNKNOWN", "ODD"])
def test_an_image_that_cannot_be_resolved_is_named_and_nothing_written(project: Path, failing: str) -> None:
    image = _IMAGES["TEMPORAL_UI_IMAGE"]
    done = _pin(project, **{failing: image})
    assert done.returncode == 1
    assert f"{image} can't be resolved" in done.stderr
    assert (project / ".env").read_text() == _BEFORE
    assert not list(project.glob(".env.*"))


def test_a_machine_without_docker_is_reported(project: Path) -> None:
    (project / "bin/docker").unlink()
    for program in ("dirname", "sed", "cp", "rm", "readlink"):
        (project / "bin" / program).symlink_to(shutil.which(program) or program)
    done = _pin(project, path=str(project / "bin"))
    assert done.returncode == 1
    assert "docker is missing" in done.stderr
    assert (project / ".env").read_text() == _BEFORE


def test_without_secrets_there_is_nothing_to_add_to(project: Path) -> None:
    (project / ".env").unlink()
    done = _pin(project)
    assert done.returncode == 1
    assert "deploy/make-env.sh" in done.stderr
    # A file of digests alone would stop make-env.sh, which writes over nothing.
    assert not (project / ".env").exists()
