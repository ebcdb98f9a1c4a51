"""The limits of a key as the wire has them. Interface specification, section 2.6."""

from msgspec import Struct


class ControlsView(Struct, kw_only=True):
    requests_per_minute: int
    monthly_quota: int | None
    allowed_ip_list: list[str]
    inactive_ttl_days: int | None
