"""Many cases in one test, where each takes less time than pytest takes for a test."""

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

Test = Callable[..., Any]


def together(names: str | tuple[str, ...], cases: Iterable[Any], *, ids: object = None) -> Callable[[Test], Test]:
    """In place of `pytest.mark.parametrize`, with the same arguments: one test runs all cases, also after one that
    fails, and fails with those that did. They share the test's fixtures. A case that skips fails too, because nobody
    would see that it was left out: it isn't listed in the first place. `ids` are for pytest alone."""
    parameters = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    given = [dict(zip(parameters, (case,) if len(parameters) == 1 else case, strict=True)) for case in cases]
    assert given, "there are no cases"

    def as_one(test: Test) -> Test:
        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            found = _Failures(test.__name__, len(given))
            for case in given:
                with found.of(case):
                    await test(**case, **fixtures)
            found.raise_them()

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            found = _Failures(test.__name__, len(given))
            for case in given:
                with found.of(case):
                    test(**case, **fixtures)
            found.raise_them()

        one: Any = run_async if asyncio.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        missing = set(parameters) - signature.parameters.keys()
        assert not missing, f"{test.__name__} takes no {missing}"
        left = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        one.__signature__ = signature.replace(parameters=left)
        made: Test = one
        return made

    return as_one


class _Failures:
    def __init__(self, test: str, cases: int) -> None:
        self._test = test
        self._cases = cases
        self._errors: list[Exception] = []

    @contextmanager
    def of(self, case: Mapping[str, Any]) -> Iterator[None]:
        try:
            yield
        # Neither is an `Exception`.
        except pytest.skip.Exception as skipped:
            self._add(AssertionError(f"skipped: {skipped}"), case)
        except pytest.fail.Exception as failed:
            self._add(AssertionError(str(failed)), case)
        except Exception as error:
            self._add(error, case)

    def _add(self, error: Exception, case: Mapping[str, Any]) -> None:
        error.add_note(f"with {str(dict(case))[:500]}")
        self._errors.append(error)

    def raise_them(self) -> None:
        if self._errors:
            raise ExceptionGroup(f"{len(self._errors)} of {self._cases} cases of {self._test} fail", self._errors)
