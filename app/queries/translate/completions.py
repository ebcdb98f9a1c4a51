"""Completions of a language model's server: any that speaks OpenAI's chat completions. The package's own
`OPENAI_API_KEY` and `OPENAI_BASE_URL` say which.

The package `openai` takes as long to import as the rest of the API together, so `model.py` imports this only where a
key is set.
"""

import asyncio
import logging
from typing import Annotated, Any

import httpx2
import msgspec
import openai
import structlog
from openai import AsyncOpenAI, OpenAIError

from app.core.errors import LanguageModelUnavailable
from app.core.tracing.spans import SpanKind, span
from app.queries.translate.reply import SCHEMA, Answered, Reply, parse
from app.queries.translate.transport import ResponseRefused, http_client

log = structlog.get_logger(__name__)

_FORMATS: tuple[dict[str, Any], ...] = (
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "translation", "strict": True, "schema": SCHEMA},
        },
        "temperature": 0,
    },
    {"response_format": {"type": "json_object"}, "temperature": 0},
    {"temperature": 0},
    {},
)
"""The forms of a request, from the strictest on; a server that refuses one is asked in the next."""
_UNSUPPORTED = (400, 422)
_REFUSALS = 3
"""How many requests in a row are refused in a form before none is sent in it: a single one may be refused for what it
says."""
_ADVICE = {
    401: "The language model's server refused the key: set OPENAI_API_KEY.",
    403: "The language model's server refused the key: set OPENAI_API_KEY.",
    404: "The language model's server doesn't know the model: set HEADWATER_NL_MODEL, or OPENAI_BASE_URL.",
}
_RETRIES = 1

# The package's HTTP client writes a line for each request.
logging.getLogger("httpx2").setLevel(logging.WARNING)


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message


_Tokens = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]


class _Usage(msgspec.Struct):
    prompt_tokens: _Tokens | None = None
    completion_tokens: _Tokens | None = None


class _Completion(msgspec.Struct):
    """What we need of a completion."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1)]
    usage: _Usage | None = None


class Completions:
    """A client of one server, of one model."""

    def __init__(self, model: str, seconds: float) -> None:
        """`seconds` is the time limit for each question."""
        self._model = model
        self._seconds = seconds
        self._form = 0
        self._refused = 0
        """How many of the last requests in a row were refused in that form, and answered in a later one."""
        self._client = AsyncOpenAI(timeout=seconds, max_retries=_RETRIES, http_client=http_client())

    async def close(self) -> None:
        await self._client.close()

    async def ask(self, messages: list[dict[str, str]]) -> Answered:
        """Raises `LanguageModelUnavailable`."""
        attributes = {"gen_ai.request.model": self._model, "server.address": self._client.base_url.host}
        try:
            with span("ask the model", SpanKind.CLIENT, attributes) as asked:
                async with asyncio.timeout(self._seconds):
                    answered = await self._ask_in_some_form(messages)
                asked.set("gen_ai.usage.input_tokens", answered.prompt_tokens)
                asked.set("gen_ai.usage.output_tokens", answered.completion_tokens)
            return answered
        except (TimeoutError, openai.APITimeoutError):
            reason = f"no answer within HEADWATER_NL_TIMEOUT_SECONDS ({self._seconds:g} s)"
            raise _unavailable(f"The language model gave {reason}.") from None
        except openai.APIStatusError as error:
            advice = _ADVICE.get(error.status_code, f"The language model's server answered {error.status_code}.")
            raise _unavailable(advice) from None
        except openai.APIConnectionError:
            raise _unavailable(
                f"The language model's server at {self._client.base_url.host} can't be reached: set OPENAI_BASE_URL."
            ) from None
        except ResponseRefused as refused:
            raise _unavailable(f"The language model's server at {self._client.base_url.host} {refused}.") from None
        except (OpenAIError, msgspec.MsgspecError, ValueError, RecursionError):
            raise _unavailable("The language model's server answered with something else than a completion.") from None

    async def _ask_in_some_form(self, messages: list[dict[str, str]]) -> Answered:
        first = self._form
        for form in range(first, len(_FORMATS)):
            try:
                answered = await self._ask_once(messages, _FORMATS[form])
            except openai.APIStatusError as error:
                if error.status_code not in _UNSUPPORTED or form + 1 == len(_FORMATS):
                    raise
                continue
            if first == self._form:
                self._note(refused=form > first)
            return answered
        raise AssertionError("the last form either answers or raises")

    def _note(self, *, refused: bool) -> None:
        """Notes whether a request that was answered had been refused in the present form before."""
        self._refused = self._refused + 1 if refused else 0
        if self._refused == _REFUSALS:
            self._form, self._refused = self._form + 1, 0

    async def _ask_once(self, messages: list[dict[str, str]], form: dict[str, Any]) -> Answered:
        # The package's typed call builds models of an answer of which we need three fields, for a millisecond.
        body = {"model": self._model, "messages": messages, **form}
        response = await self._client.post("/chat/completions", cast_to=httpx2.Response, body=body)
        completion = msgspec.json.decode(response.content, type=_Completion)
        message, usage = completion.choices[0].message, completion.usage or _Usage()
        reply = Reply(refusal=message.refusal) if message.refusal else parse(message.content)
        return Answered(
            reply=reply,
            prompt_tokens=usage.prompt_tokens or 0,
            completion_tokens=usage.completion_tokens or 0,
        )


def _unavailable(message: str) -> LanguageModelUnavailable:
    log.warning("language_model_unavailable", reason=message)
    return LanguageModelUnavailable(message)
