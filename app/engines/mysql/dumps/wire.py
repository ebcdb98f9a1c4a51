"""What the client-server protocol needs here: greeting a tool that connects to us, and the bounds of packets.

Of the capabilities those alone are offered that our own connection to the server has too, so that what one side sends
can be passed to the other as it is.
"""

import asyncio
import secrets
import struct

from pymysql.constants import CLIENT

from app.engines.errors import EngineError

COM_QUIT, COM_INIT_DB, COM_QUERY, COM_PING = 1, 2, 3, 14
MAX_PACKET_BYTES = 2**24 - 1
"""From this length on a statement would be several packets, and MariaDB takes none by default."""
MAX_COMMAND_BYTES = 1_048_576
"""The maximum length of what a tool sends: its statements are short."""
_CAPABILITIES = (
    CLIENT.LONG_PASSWORD
    | CLIENT.LONG_FLAG
    | CLIENT.CONNECT_WITH_DB
    | CLIENT.PROTOCOL_41
    | CLIENT.TRANSACTIONS
    | CLIENT.SECURE_CONNECTION
    | CLIENT.MULTI_RESULTS
    | CLIENT.PS_MULTI_RESULTS
    | CLIENT.PLUGIN_AUTH
)
_UTF8MB4 = 45
_AUTOCOMMIT = 2
_OK = b"\x00\x00\x00" + struct.pack("<HH", _AUTOCOMMIT, 0)


def packet(sequence: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload


async def read_packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """A tool's packet and its sequence number. Raises `EngineError` for a longer one than tools send."""
    head = await reader.readexactly(4)
    length = int.from_bytes(head[:3], "little")
    if length > MAX_COMMAND_BYTES:
        raise EngineError("the dump tool sent a statement that is too long")
    return head[3], await reader.readexactly(length)


async def greet(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, server_version: str, plugin: str
) -> None:
    """Greets the client and accepts it without a password."""
    salt = secrets.token_bytes(20).replace(b"\x00", b"\x01")
    greeting = (
        b"\x0a"
        + server_version.encode()
        + b"\x00"
        + struct.pack("<I", 1)
        + salt[:8]
        + b"\x00"
        + struct.pack("<HBHHB", _CAPABILITIES & 0xFFFF, _UTF8MB4, _AUTOCOMMIT, _CAPABILITIES >> 16, len(salt) + 1)
        + bytes(10)
        + salt[8:]
        + b"\x00"
        + plugin.encode()
        + b"\x00"
    )
    writer.write(packet(0, greeting))
    sequence, _ = await read_packet(reader)
    writer.write(packet(sequence + 1, _OK))
    await writer.drain()
