"""The language model, where one is configured."""

import os
from typing import TYPE_CHECKING

from app.core.errors import LanguageModelUnavailable
from app.core.settings import Settings
from app.queries.translate.reply import Answered

if TYPE_CHECKING:
    from app.queries.translate.completions import Completions


class LanguageModel:
    """The language model of a process; `name` is empty where none is set."""

    def __init__(self, settings: Settings) -> None:
        self.name = settings.nl_model or ""
        self._completions = _completions(settings)

    async def close(self) -> None:
        if self._completions is not None:
            await self._completions.close()

    def require(self) -> "Completions":
        """Raises `LanguageModelUnavailable` when a setting is missing."""
        missing = [
            variable
            for variable, is_set in (
                ("HEADWATER_NL_MODEL", bool(self.name)),
                ("OPENAI_API_KEY", self._completions is not None),
            )
            if not is_set
        ]
        if missing or self._completions is None:
            raise LanguageModelUnavailable(
                f"No language model is configured: set {' and '.join(missing)}, and OPENAI_BASE_URL for a server of "
                "your own (which may take any key)."
            )
        return self._completions

    async def ask(self, messages: list[dict[str, str]]) -> Answered:
        """Raises `LanguageModelUnavailable`."""
        return await self.require().ask(messages)


def _completions(settings: Settings) -> "Completions | None":
    """None where there is no key."""
    if not os.environ.get("OPENAI_API_KEY"):  # the package takes an empty one for a key
        return None
    from app.queries.translate.completions import Completions  # noqa: PLC0415  takes long, see there

    return Completions(settings.nl_model or "", settings.nl_timeout_seconds)
