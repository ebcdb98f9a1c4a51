"""How often one address tries to sign in."""

from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network
from time import monotonic

from app.auth.client_address import Address, Network, parse_address
from app.core.errors import RateLimitExceeded

PER_MINUTE = 300
_WINDOW_SECONDS = 60.0
_MOST_ADDRESSES = 10_000


class SignInAttempts:
    """Of one process. A minute begins with its first attempt. Neighbours in an IPv6 network of 64 bits count as one:
    they are one subscriber. Of more addresses than are kept, those whose minute began first are forgotten."""

    def __init__(self, per_minute: int = PER_MINUTE) -> None:
        self._per_minute = per_minute
        self._windows: OrderedDict[Address | Network, list[float]] = OrderedDict()
        """When each began, and the number of attempts."""

    def count(self, address: str) -> None:
        """Raises `RateLimitExceeded`."""
        now = monotonic()
        whose: Address | Network = parse_address(address)
        if isinstance(whose, IPv6Address):
            whose = IPv6Network((whose, 64), strict=False)
        window = self._windows.get(whose)
        if window is None or now - window[0] >= _WINDOW_SECONDS:
            self._windows.pop(whose, None)
            window = self._windows[whose] = [now, 0]
            if len(self._windows) > _MOST_ADDRESSES:
                self._windows.popitem(last=False)
        window[1] += 1
        if window[1] > self._per_minute:
            left = max(1, round(_WINDOW_SECONDS - (now - window[0])))
            raise RateLimitExceeded(self._per_minute, left, "To sign in, an address")
