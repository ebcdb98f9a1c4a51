"""Which traces are recorded: the samplers that `OTEL_TRACES_SAMPLER` may name.

https://opentelemetry.io/docs/specs/otel/trace/sdk/#sampling
"""

from collections.abc import Callable

from app.core.tracing.context import SpanContext

Sampler = Callable[[bytes, SpanContext | None], bool]
"""Decides by the trace's id, and by the parent, if there is one."""
NAMES = (
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
)
_PARENT_BASED = "parentbased_"


def sampler_of(name: str, ratio: float) -> Sampler:
    """The sampler called `name`, one of `NAMES`. `ratio` is the part of all traces that is recorded, for samplers that
    take one. The same trace is recorded by all processes or by none."""
    root = _root_sampler(name.removeprefix(_PARENT_BASED), ratio)
    if not name.startswith(_PARENT_BASED):
        return root
    return lambda trace_id, parent: root(trace_id, None) if parent is None else parent.sampled


def _root_sampler(name: str, ratio: float) -> Sampler:
    if name == "always_on":
        return lambda trace_id, parent: True
    if name == "always_off":
        return lambda trace_id, parent: False
    bound = round(ratio * 2**64)
    return lambda trace_id, parent: int.from_bytes(trace_id[8:], "big") < bound
