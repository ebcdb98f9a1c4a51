"""Regular expressions that users write, matched in time linear to the value: no pattern can hang the process."""

from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

MAX_PATTERN = 500


class PatternError(Exception):
    """The pattern is too long, or not in the syntax of the engine."""


class Pattern:
    """A compiled pattern. Raises `PatternError`."""

    def __init__(self, pattern: str) -> None:
        self._validator = _compiled(pattern)

    def found_in(self, value: str) -> bool:
        try:
            self._validator.validate_python(value)
        except ValidationError:
            return False
        return True


@lru_cache(maxsize=8)  # each may take 10 MiB
def _compiled(pattern: str) -> SchemaValidator:
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"a pattern has at most {MAX_PATTERN} characters")
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except SchemaError as error:
        reason = (
            str(error)
            .strip()
            .splitlines()[-1]
            .strip()
            .removeprefix("error: ")
            .removeprefix("SchemaError: ")
            .rstrip(".")
        )
        raise PatternError(
            f"is no usable regular expression (look-around and back-references aren't): {reason}"
        ) from None
