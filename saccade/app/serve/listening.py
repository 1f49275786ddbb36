"""Where the server listens, how it is reached there, and how many may come."""

import errno
import ipaddress
import os
import resource
import socket
from contextlib import suppress
from typing import NamedTuple

from saccade.app.serve.http.protocol import SPARE
from saccade.errors import ConfigError

ELSEWHERE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}  # for examples: nobody
OTHER_FILES = 24  # logs, pipes of the image decoder and files that are read for a moment


class At(NamedTuple):
    """Where a server is to be found, and what clients must know; "" makes a token where needed."""

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""


def bind(host: str, port: int) -> socket.socket:
    """A socket on that port, before anything is loaded."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"port={port} must be from 0 (any that is free) to 65535")
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, proto)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ConfigError(f"host={host!r} port={port} cannot be listened on: {error}") from error
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(where)
        listener.listen(1)
    except (OSError, OverflowError) as error:
        listener.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        reason = "it is in use" if taken else str(error)
        raise ConfigError(
            f"port {port} of {host} cannot be used: {reason}; choose another with --port"
        ) from error
    return listener


def address(listener: socket.socket) -> str:
    """What to type into a browser; a server on all addresses is told by this machine's own."""
    host, port = str(listener.getsockname()[0]), listener.getsockname()[1]
    if ipaddress.ip_address(host).is_unspecified:
        host = own_address(listener.family)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def own_address(family: socket.AddressFamily) -> str:
    """The address that others know this machine by; its own name for itself without a network."""
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as wire:
        wire.connect((ELSEWHERE[family], 9))  # chooses a way and sends nothing
        return str(wire.getsockname()[0])
    return "::1" if family == socket.AF_INET6 else "127.0.0.1"


class Room(NamedTuple):
    """How many connections there may be, and how many are accepted at a time."""

    connections: int
    at_a_time: int


def room_for(connections: int) -> Room:
    """As many as wanted, or as the files that this process may open leave room for.

    Connections are accepted before anyone can say that there are too many, and closed two rounds
    later, so that there must be room for a few rounds more.
    """
    may_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if may_open == resource.RLIM_INFINITY:
        return Room(connections, 32)
    free = may_open - len(os.listdir("/dev/fd")) - OTHER_FILES - SPARE
    at_a_time = max(1, min(free // 16, 32))
    room = free - 4 * at_a_time
    if room < 1:
        raise ConfigError(
            f"this process may open {may_open} files, too few to serve anyone; allow more with "
            f"ulimit -n {2 * (may_open - room)}"
        )
    return Room(min(connections, room), at_a_time)
