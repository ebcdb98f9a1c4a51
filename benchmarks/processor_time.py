"""The processor time of each service of a stack, and assigning processors to it; on Linux only."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(processes: Mapping[str, list[int]]) -> dict[str, float]:
    """By service: the seconds of processor time of its processes and their descendants since their start."""
    return {part: sum(_seconds(pid) for root in roots for pid in _family(root)) for part, roots in processes.items()}


def spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The difference of two readings, the largest first; idle services are left out."""
    parts = {part: after[part] - before[part] for part in after if after[part] - before[part] >= 1 / _TICKS}
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def keep_apart(processes: Mapping[str, list[int]], alone: str) -> None:
    """Gives that service the first half of the processors; all others and this process share the rest, as if they
    were on another machine."""
    processors = sorted(os.sched_getaffinity(0))
    half = len(processors) // 2
    for part, roots in processes.items():
        for pid in {pid for root in roots for pid in _family(root)}:
            _keep_on(pid, processors[:half] if part == alone else processors[half:])
    _keep_on(os.getpid(), processors[half:])


def _keep_on(pid: int, processors: list[int]) -> None:
    """Applies to its threads, and to everything that they start."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            os.sched_setaffinity(int(thread.name), processors)
        except ProcessLookupError:  # it has ended meanwhile
            continue


def _family(root: int) -> Iterator[int]:
    yield root
    try:
        for task in Path(f"/proc/{root}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return


def _seconds(pid: int) -> float:
    """Including children that it has seen end, such as a PostgreSQL server's."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


def resident_bytes(processes: Mapping[str, list[int]]) -> dict[str, int]:
    """By service: the memory of its processes and their descendants; what they share is counted once."""
    return {
        part: sum(_proportional(pid) for root in roots for pid in _family(root)) for part, roots in processes.items()
    }


def _proportional(pid: int) -> int:
    """Its proportional set size."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
