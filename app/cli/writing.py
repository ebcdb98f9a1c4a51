"""Writing to standard output."""

from collections.abc import Iterator
from contextlib import contextmanager

import rich_click as click


@contextmanager
def writing() -> Iterator[None]:
    """For a block that does nothing but write to standard output. Raises `click.ClickException` where that fails; once
    nobody reads it any more, as behind `| head`, the command ends without a word, with exit status 1."""
    try:
        yield
    except BrokenPipeError:
        raise SystemExit(1) from None
    except OSError as error:
        raise click.ClickException(f"Can't write the output: {error.strerror}") from None
