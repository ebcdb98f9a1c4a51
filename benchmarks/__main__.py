"""`python -m benchmarks`: measures on a stack of its own, and prints what docs/benchmarks.md quotes."""

import argparse
import asyncio
import os
import platform

from app.contracts.base import Engine
from app.local.stack_file import StackFile
from benchmarks.cold_create import Pairs, measure, quantile
from benchmarks.stack import running_stack

_PAIRS = 60
_TARGET = 2.0
"""For PostgreSQL: a create costs at most twice the bare statements."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pairs", type=int, default=_PAIRS, help="creates of each engine (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0, help="seconds before each pair (default: %(default)s)")
    given = parser.parse_args()
    with running_stack() as stack:
        asyncio.run(_run(stack, given.pairs, given.pause))


async def _run(stack: StackFile, pairs: int, pause: float) -> None:
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    print(f"cold create with wait=true, against account + database + grant; {pairs} pairs, {pause:g} s apart\n")
    print("| engine   | API p50 | API p95 | raw p50 | raw p95 | ratio of p50 | pair ratio p50 | p95 |")
    print("|----------|---------|---------|---------|---------|--------------|----------------|-----|")
    for host in stack.hosts:
        result = await measure(stack, host, pairs, pause)
        print(_row(result))
        if host.engine == Engine.POSTGRES:
            verdict = f"{host.engine}: {result.ratio:.2f}, the target is at most {_TARGET}"
    print(f"\n{verdict}")


def _row(pairs: Pairs) -> str:
    times = [f"{1000 * quantile(side, at):.0f} ms" for side in (pairs.api, pairs.raw) for at in (0.5, 0.95)]
    ratios = [pairs.ratio, *(quantile(pairs.pair_ratios, at) for at in (0.5, 0.95))]
    return f"| {pairs.engine} | {' | '.join(times)} | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} |"


if __name__ == "__main__":
    main()
