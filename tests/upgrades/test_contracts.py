"""The release before understands what crosses processes: fields stay as they are, and new ones may be left out.

What no release uses any more may go with the next one, whose tests compare with a release that is newer.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.upgrades.released import COMMITS, environment

Fields = Mapping[str, Mapping[str, str]]
"""What stands for each field that is left out, by the struct's name."""
_ROOT = Path(__file__).parents[2]
_PROGRAM = """
import importlib, inspect, json, pkgutil
import msgspec
from app import contracts
from app.contracts.base import Contract

def fields(kind):
    return {
        one.encode_name: "required" if one.required else repr((one.default, one.default_factory))
        for one in msgspec.structs.fields(kind)
    }

names = [one.name for one in pkgutil.iter_modules(contracts.__path__)]
modules = [importlib.import_module(f"{contracts.__name__}.{name}") for name in names]
kinds = [kind for module in modules for _, kind in inspect.getmembers(module, inspect.isclass)]
print(json.dumps({kind.__name__: fields(kind) for kind in kinds if issubclass(kind, Contract)}))
"""
"""For the release's environment too, which has nothing of the tests."""


def fields(python: Path | str, folder: Path) -> Fields:
    """Of all contracts of that interpreter's Headwater, begun in that folder."""
    printed = subprocess.run([python, "-c", _PROGRAM], cwd=folder, env={}, capture_output=True, check=True)
    found: Fields = json.loads(printed.stdout)
    return found


def broken(old: Fields, new: Fields) -> set[str]:
    """What one of the two versions would refuse, or take for something else."""
    changed = {
        f"{kind}.{name}" for kind, of in old.items() for name, is_ in of.items() if new.get(kind, {}).get(name) != is_
    }
    added = {f"{kind}.{name}" for kind, of in old.items() for name in new.get(kind, {}).keys() - of.keys()}
    return changed | {one for one in added if new[one.partition(".")[0]][one.partition(".")[2]] == "required"}


def test_the_newest_release_understands_what_says_nothing_new(tmp_path: Path) -> None:
    released = fields(environment(tmp_path / "old", list(COMMITS)[-1]), tmp_path)
    assert broken(released, fields(sys.executable, _ROOT)) == set()


_OLD = {"Input": {"database": "required", "round": "0"}}


@pytest.mark.parametrize(
    "of",
    [
        {"round": "0"},
        {"database": "required"},
        {"database": "None", "round": "0"},
        {"database": "required", "round": "1"},
        {"database": "required", "round": "0", "more": "required"},
    ],
)
def test_a_change_is_seen(of: dict[str, str]) -> None:
    assert broken(_OLD, {"Input": of}) != set()


def test_what_may_be_left_out_is_none() -> None:
    assert broken(_OLD, {"Input": {**_OLD["Input"], "more": "None"}, "Another": {}}) == set()
