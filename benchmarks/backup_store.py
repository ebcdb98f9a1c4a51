"""`python -m benchmarks.backup_store`: what it costs to keep a dump (zstd, encryption, hashes, objects in a folder),
compared with `zstd -1` of the same bytes to a file."""

import argparse
import asyncio
import os
import platform
import random
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from app.backups.storage.store import BackupStore
from app.core.secrets import SecretBox
from app.core.settings import Settings
from app.engines.dumping import CHUNK_BYTES
from benchmarks.cold_create import quantile

_ROUNDS = 5
_MEGABYTES = 500
_TARGET = 1.3


@dataclass
class Seconds:
    """For each round."""

    store: list[float] = field(default_factory=list)
    zstd: list[float] = field(default_factory=list)
    store_processor: list[float] = field(default_factory=list)
    zstd_processor: list[float] = field(default_factory=list)
    """Of this process, which feeds it, and its child."""

    @property
    def ratio(self) -> float:
        return quantile([mine / other for mine, other in zip(self.store, self.zstd, strict=True)], 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backup_store", description=__doc__)
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="of each, in turn (default: %(default)s)")
    parser.add_argument("--megabytes", type=int, default=_MEGABYTES, help="of a dump (default: %(default)s)")
    given = parser.parse_args()
    program = shutil.which("zstd")
    if program is None:
        raise SystemExit("no zstd on the PATH to compare with")
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"{given.megabytes} MB, {given.rounds} rounds in turn, both to disk; p50\n")
    print("| dump | store | zstd -1 to a file | ratio | processor time | of zstd |")
    print("|------|-------|-------------------|-------|----------------|---------|")
    with tempfile.TemporaryDirectory() as folder:
        for name, dump in (("text", _text(given.megabytes)), ("incompressible", _noise(given.megabytes))):
            seconds = asyncio.run(_measure(Path(folder), program, dump, given.rounds))
            sides = (seconds.store, seconds.zstd, seconds.store_processor, seconds.zstd_processor)
            store, zstd, *processor = (f"{quantile(side, 0.5):.2f} s" for side in sides)
            print(f"| {name} | {store} | {zstd} | {seconds.ratio:.2f} | {' | '.join(processor)} |")
    print(f"\nat most {_TARGET} of a whole backup is wanted, in which the engine's own dump runs beside this")


async def _measure(folder: Path, program: str, dump: list[bytes], rounds: int) -> Seconds:
    settings = Settings(backup_store=(folder / "store").as_uri())
    store = BackupStore.from_settings(settings, SecretBox({"k1": os.urandom(32)}))
    seconds = Seconds()
    for _ in range(rounds):
        backup = uuid4()
        began, used = time.perf_counter(), _processor_seconds()
        await store.write(backup, store.new_key(backup), _chunks(dump))
        seconds.store.append(time.perf_counter() - began)
        seconds.store_processor.append(_processor_seconds() - used)
        await store.delete(backup)
        used = _processor_seconds()
        seconds.zstd.append(await _bare(folder / "dump.zst", program, dump))
        seconds.zstd_processor.append(_processor_seconds() - used)
    return seconds


async def _bare(path: Path, program: str, dump: list[bytes]) -> float:
    """As long as it takes until the file is on the disk, as the store's are."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        program, "-1", "-q", "-f", "-o", str(path), stdin=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None
    for chunk in dump:
        process.stdin.write(chunk)
        await process.stdin.drain()
    process.stdin.close()
    assert await process.wait() == 0
    await asyncio.to_thread(_sync, path)
    return time.perf_counter() - began


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


async def _chunks(dump: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in dump:
        yield chunk


def _text(megabytes: int) -> list[bytes]:
    """Rows as a dump has them."""
    chance = random.Random(1)
    rows = b"".join(
        b"%d\tcustomer %d\t%.6f\t2026-11-%02d\tactive\n"
        % (number, chance.randrange(10**6), chance.random(), number % 28 + 1)
        for number in range(150_000)
    )
    return [rows[start : start + CHUNK_BYTES] for start in range(0, len(rows), CHUNK_BYTES)] * (
        megabytes * 1_000_000 // len(rows) or 1
    )


def _noise(megabytes: int) -> list[bytes]:
    return [os.urandom(CHUNK_BYTES) for _ in range(min(megabytes, 64))] * (megabytes // min(megabytes, 64))


if __name__ == "__main__":
    main()
