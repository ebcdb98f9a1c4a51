"""Makes a host that can be registered from what an operator sends."""

import msgspec

from app.core.errors import InvalidField
from app.engines.base import AdminAddress
from app.engines.registry import ADAPTERS
from app.engines.tls import TlsMode, TlsPolicy, certificates
from app.hosts.records import tls_of
from app.hosts.registration import NewHost, usual_tls
from app.operators.schemas import AddHost


async def described(data: AddHost) -> NewHost:
    """The host that the request describes. One that is registered already keeps its TLS mode unless another is given.
    Raises `InvalidField`."""
    given = _policy(data.tls, data.ca)
    port = data.admin_port or ADAPTERS[data.db_type].default_port
    address, public_port = data.public_host or data.admin_host, data.public_port or port
    tls = given or await tls_of(data.db_type, address, public_port) or usual_tls(data.admin_host)
    admin = AdminAddress(
        host=data.admin_host,
        port=port,
        user=data.admin_user,
        password=data.admin_password,
        database=data.admin_database,
    )
    return NewHost(
        engine=data.db_type,
        region=data.region,
        admin=msgspec.structs.replace(admin, tls=tls),
        public_host=address,
        public_port=public_port,
        capacity=data.capacity,
        connection_capacity=data.connection_capacity,
        connection_overcommit=data.connection_overcommit,
        storage_gb=data.storage_gb,
    )


def _policy(mode: str | None, ca: str | None) -> TlsPolicy | None:
    """The TLS policy that was given; None where none was."""
    if ca is None:
        return None if mode is None else TlsPolicy(mode=TlsMode(mode))
    if mode == TlsMode.DISABLE.value:
        raise InvalidField("ca", "It has no meaning without TLS.")
    policy = TlsPolicy(mode=TlsMode(mode) if mode else TlsMode.VERIFY_FULL, ca=certificates(ca))
    try:
        policy.context  # noqa: B018  what it raises is wanted
    except ValueError as error:
        raise InvalidField("ca", f"Expected a PEM of certificates: {error}.") from None
    return policy
