"""The operator's view of the stack while it starts and runs, on a terminal or in a log file."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape


class Screen:
    """Writes to standard error: plain lines, and on a terminal also a live line of what is awaited. What can't be
    written, to a file on a full disk perhaps, ends nothing."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._waiting: list[str] = []
        self._status = self._console.status("")

    def say(self, text: str) -> None:
        self._print(escape(text))

    def fail(self, text: str) -> None:
        self._print(f"[bold red]headwater:[/] {escape(text)}")

    @contextlib.contextmanager
    def waiting(self, name: str, condition: str = "") -> Iterator[None]:
        """Shows what the block waits for, and afterwards how long it took."""
        started = time.monotonic()
        what = f"{name}: waiting for {condition}" if condition else name
        self._waiting.append(what)
        self._refresh()
        if not self._console.is_terminal:
            self.say(f"… {what}")
        try:
            yield
            self._print(f"[green]✓[/] {escape(name)} [dim]({time.monotonic() - started:.1f} s)[/]")
        finally:
            self._waiting.remove(what)
            self._refresh()

    def _print(self, markup: str) -> None:
        with contextlib.suppress(OSError):
            self._console.print(markup)

    def _refresh(self) -> None:
        if not self._console.is_terminal:
            return
        if self._waiting:
            self._status.update(escape(" · ".join(self._waiting)))
            self._status.start()
        else:
            self._status.stop()
