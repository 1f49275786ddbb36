"""Who may ask: under which names, from which pages, and with which token."""

import hmac
import ipaddress
import re
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from saccade.app.serve.http.errors import RequestError
from saccade.errors import ConfigError

EVERYWHERE = ("0.0.0.0", "::", "")
OPEN = ("/", "/health", "/ready")  # tell nothing of the runs: no token is needed
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")

Headers = dict[str, bytes]


class Hosts:
    """The names under which this server may be asked for.

    A page of a stranger can make a browser believe that the stranger's name is this machine; it
    cannot make the browser send another name. On all addresses, any address will do, but no name.
    """

    def __init__(self, bound: str, further: tuple[str, ...]) -> None:
        self._any_address = bound in EVERYWHERE
        self._further = {name.lower() for name in further}
        self._names = {"localhost", "127.0.0.1", "::1", *self._further}
        self._names.add(socket.gethostname().lower() if self._any_address else bound.lower())

    def check(self, header: str) -> None:
        if self.knows(header):
            return
        message = f"this server is not called {header[:60]!r}; start it with --hosts to allow that"
        raise RequestError(421, "host", message)

    def knows(self, header: str) -> bool:
        name = self._name(header).lower()
        return name in self._names or (self._any_address and _is_address(name))

    def check_page(self, headers: Headers) -> None:
        """Refuse what a page of others sends: a browser says so, and a page cannot forbid it to.

        A form needs nobody's leave to be sent. Programs that are no browsers say nothing.
        """
        site = headers.get("sec-fetch-site", b"none")
        origin = headers.get("origin", b"").decode("latin-1")
        own = headers.get("host", b"").decode("latin-1").lower()
        at = origin.lower().partition("://")[2]
        same = not origin or at == own or self._name(at) in self._further
        if site not in (b"none", b"same-origin") or not same:
            shown = ascii(origin[:60] or site.decode("latin-1")[:60])
            message = f"a page of {shown} may not ask here; use the page of this server"
            raise RequestError(403, "origin", message)

    @staticmethod
    def _name(header: str) -> str:
        if header.startswith("["):
            name, bracket, port = header[1:].partition("]")
            return name if bracket and _is_port(port.removeprefix(":")) else header
        name, _, port = header.partition(":")
        return name if _is_port(port) else header


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit())


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Token:
    """What a client must know where others could reach the server; none is needed without one.

    A program sends it as `Authorization: Bearer …`. A browser opens `/?token=…` once, and is given
    a cookie instead, which no other site can have it send.
    """

    def __init__(self, token: str) -> None:
        if token and not TOKEN.fullmatch(token):
            raise ConfigError(
                f"a token of {len(token)} characters was given; it must have 16 to 200 letters, "
                "digits, - or _: leave it out, and one is made"
            )
        self._token = token

    def check(self, scope: Any, headers: Headers) -> None:
        if not self._token or scope["path"] in OPEN:
            return
        kind, _, given = headers.get("authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and self._is(given.strip()):
            return
        if self._is(self._cookie(headers, self._name(scope)).encode("latin-1", "replace")):
            return
        raise self._refusal()

    def cookie(self, scope: Any) -> str | None:
        """What a browser is given that has opened the page with the token."""
        if not self._token or scope["path"] != "/" or not scope["query_string"]:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given is None:
            return None
        if not self._is(given[0].encode("latin-1", "replace")):
            raise self._refusal()
        return f"{self._name(scope)}={self._token}; Path=/; HttpOnly; SameSite=Strict"

    def _is(self, given: bytes) -> bool:
        return hmac.compare_digest(given, self._token.encode())

    @staticmethod
    def _name(scope: Any) -> str:
        """Another server on this machine has another port, and browsers tell cookies by name."""
        return f"saccade-{(scope.get('server') or ('', 0))[1]}"

    @staticmethod
    def _cookie(headers: Headers, name: str) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", b"").decode("latin-1"))
        except CookieError:
            return ""
        return found[name].value if name in found else ""

    @staticmethod
    def _refusal() -> RequestError:
        message = "this server wants its token: open the link that it printed when it was started"
        return RequestError(401, "token", message, headers={"WWW-Authenticate": "Bearer"})


def token_for(address: str, given: str) -> str:
    """The token of a server at this address: where others reach it there is always one."""
    if given or ipaddress.ip_address(address).is_loopback:
        return given
    return secrets.token_urlsafe(18)


def client_of(scope: Any) -> str:
    """Whom a request comes from, for taking turns: an address, or a network of IPv6."""
    host: str = (scope.get("client") or ("", 0))[0]
    if ":" not in host:
        return host
    try:
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    except ValueError:
        return host
