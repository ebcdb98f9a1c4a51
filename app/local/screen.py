"""The operator's view of the stack while it starts and runs, on a terminal or in a log file."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape


class SteadyConsole(Console):
    """Falls silent when nobody reads its pipe any more. Rich's own console ends the process then."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class Screen:
    """Writes to standard error: plain lines, and on a terminal also a live line of what is awaited. What can't be
    written ends nothing: to a file on a full disk, to a pipe that nobody reads, to a terminal that is gone."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or SteadyConsole(stderr=True, highlight=False, soft_wrap=True)
        self._waiting: list[str] = []
        self._status = self._console.status("")
        # Asked once: a terminal that is gone says that it is none.
        self._has_live_line = self._console.is_terminal

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
        if not self._has_live_line:
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
        if not self._has_live_line:
            return
        try:
            if self._waiting:
                self._status.update(escape(" · ".join(self._waiting)))
                self._status.start()
            else:
                self._status.stop()
        except OSError:
            # It is half begun or half ended now, and would fail again in other ways.
            self._has_live_line = False
