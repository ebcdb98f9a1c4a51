"""Answers that stay open and report each change: Server-Sent Events (WHATWG HTML, section 9.2).

A stream is not a request in flight: it has a bound of its own, holds no connection to our database while nothing
happens, and ends when its operation does, when its key, its session or its user's membership does, and when the process
does. What a client misses between two streams it gets from the next one: it sends the id of the last event that it had.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec
import structlog
from litestar import Request, Response
from litestar.response import Stream
from litestar.response.sse import ServerSentEventMessage

from app.auth.principal import Principal
from app.auth.scopes import Scope
from app.auth.standing import Standing, still_good
from app.core.errors import TooManyStreams
from app.core.limiter import Limiter
from app.web.held import STATE, Held

_CHECKS = 3
"""How often the keys and memberships of all open streams are checked in the time after which a comment is sent."""
_COMMENT = ServerSentEventMessage(data=None, comment="nothing new", sep="\n").encode()

Key = TypeVar("Key", bound=Hashable)
log = structlog.get_logger(__name__)


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream's subject is now."""

    version: int
    """Counts its changes: the event's `id`."""
    event: str
    data: bytes
    """JSON."""
    last: bool
    """Whether the subject changes no more."""


Look = Callable[[], Awaitable[Frame | None]]


class EventStreams:
    """The streams of one process."""

    def __init__(
        self, *, per_key: int, per_team: int, total: int, stopping: asyncio.Event, comment_seconds: float
    ) -> None:
        """`stopping` is set when the process is to end, and ends all streams. A comment is sent after `comment_seconds`
        without an event, so that nothing on the way takes the connection for dead."""
        self._per_key, self._keys = per_key, Limiter[tuple[int, int | None]](per_key)
        self._per_team, self._teams = per_team, Limiter[int](per_team)
        self._total, self._all = total, Limiter[None](total)
        self._stopping = stopping
        self._comment_seconds = comment_seconds
        self._open: dict[asyncio.Event, _OpenStream] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator["EventStreams"]:
        """For the block, ends streams whose caller may not see their subject any more."""
        checking = asyncio.create_task(self._check())
        try:
            yield self
        finally:
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)

    def answer(
        self,
        request: Request[Principal, Any, Any],
        caller: Standing,
        changes: Callable[[], AbstractContextManager[asyncio.Event]],
        look: Look,
        *,
        now: Frame,
        scope: Scope,
    ) -> Response[Any]:
        """The answer that reports to `caller` each change of a thing. `now` is its present state. `changes` gives an
        event that is set when the state may have changed; `look` returns the state, or None when the thing is gone. A
        client that has already seen the last state gets a 204, which ends its reconnecting. Raises `TooManyStreams`."""
        seen = _last_event_id(request)
        if now.last and seen == now.version:
            return Response(None, status_code=204)
        held: Held = request.scope["state"][STATE]
        # Takes places among the streams until the answer has been sent, in place of those among the requests in flight.
        held.stack.enter_context(self._slots(caller))
        held.give_places_back()
        changed = held.stack.enter_context(changes())
        stream = held.stack.enter_context(self._opened(caller, scope, changed))
        return Stream(
            self._follow(stream, changed, look, seen),
            media_type="text/event-stream",
            # nginx would collect what is sent until it has some kilobytes.
            headers={"X-Accel-Buffering": "no"},
        )

    @contextmanager
    def _slots(self, caller: Standing) -> Iterator[None]:
        _check_room(self._keys, caller.holder, "This API key or session", self._per_key)
        _check_room(self._teams, caller.team_id, "The team", self._per_team)
        _check_room(self._all, None, "One process of the API", self._total)
        with self._keys.slot_now(caller.holder), self._teams.slot_now(caller.team_id), self._all.slot_now(None):
            yield

    @contextmanager
    def _opened(self, caller: Standing, scope: Scope, changed: asyncio.Event) -> Iterator["_OpenStream"]:
        self._open[changed] = _OpenStream(caller, scope)
        try:
            yield self._open[changed]
        finally:
            del self._open[changed]

    async def _follow(
        self, stream: "_OpenStream", changed: asyncio.Event, look: Look, seen: int | None
    ) -> AsyncIterator[bytes]:
        while not stream.over and not self._stopping.is_set():
            changed.clear()
            known, frame = await _look(stream, look)
            if known and frame is None:
                return
            if frame is not None and frame.version != seen:
                seen = frame.version
                yield _encode(frame)
            if frame is not None and frame.last:
                return
            while not await _is_set_within(changed, self._comment_seconds):
                yield _COMMENT
                if not known:
                    break

    async def _check(self) -> None:
        while not await _is_set_within(self._stopping, self._comment_seconds / _CHECKS):
            try:
                await self._end_refused()
            except Exception as fault:
                # Our own database may be away; nothing new is sent from it meanwhile.
                log.warning("streams_unchecked", reason=str(fault) or type(fault).__name__)
        for changed in self._open:
            changed.set()

    async def _end_refused(self) -> None:
        for scope in {stream.scope for stream in self._open.values()}:
            mine = {changed: one for changed, one in self._open.items() if one.scope is scope}
            good = await still_good([one.caller for one in mine.values()], scope)
            for changed, stream in mine.items():
                if stream.caller not in good:
                    stream.over = True
                    changed.set()


class _OpenStream(msgspec.Struct):
    caller: Standing
    scope: Scope
    over: bool = False


async def _look(stream: _OpenStream, look: Look) -> tuple[bool, Frame | None]:
    """Whether our own database answered, and what the thing is now: None when it is gone or no longer the caller's."""
    try:
        return True, await look() if await still_good([stream.caller], stream.scope) else None
    except Exception as fault:
        # The stream stays open: a client that is refused while our database is away would not come back.
        log.warning("stream_unread", reason=str(fault) or type(fault).__name__)
        return False, None


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _encode(frame: Frame) -> bytes:
    return ServerSentEventMessage(data=frame.data, event=frame.event, id=frame.version, sep="\n").encode()


def _last_event_id(request: Request[Any, Any, Any]) -> int | None:
    """The id that a client which comes back sends; None where it sends none that we could have given."""
    text = request.headers.get("Last-Event-ID", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _check_room(limiter: Limiter[Key], key: Key, whose: str, limit: int) -> None:
    if not limiter.has_room(key):
        raise TooManyStreams(whose, limit)
