"""What the server allows. Every limit is here, in `--help` and at `/info`."""

from dataclasses import dataclass, fields

from saccade.config import check_positive
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Limits of the server; whatever goes beyond one is refused with a message that states it.

    Args:
        text_characters: longest text of a request.
        text_tokens: the same in tokens, of a run that sees any number of them.
        beam: widest beam that may be asked for.
        n_best: longest n-best list that may be asked for.
        most_tokens: most tokens that a language run writes for one text.
        count: most texts that a language run writes for one prompt.
        body_bytes: largest body of a request without an image.
        image_bytes: largest body of a request, where a run is served that takes images.
        image_pixels: largest image, in pixels.
        request_pixels: pixels of all images of a request together, as they are decoded.
        image_s: seconds that it may take to decode the images of a request.
        held_bytes: bodies that are held at once; one more is told to come back.
        look_bytes: size that the arrays of a look are kept to.
        queue: requests that may wait; one more is told to come back.
        batch: most texts in one request, and decoded together.
        wait_ms: how long a batch waits to fill; 0 takes what is there.
        deadline_s: seconds after which a request is given up, waiting or running.
        header_s: seconds that a client has for its headers, and that it may be idle.
        body_s: seconds that a client has for its body.
        write_s: seconds that a client may leave an answer unread.
        grace_s: seconds that running requests have to end when the server is stopped.
        hang_s: seconds without a decoding step after which a run counts as hung.
        connections: most open connections; the longest idle one makes room for a new one.
        hosts: further names under which clients may reach this server.
    """

    text_characters: int = 4000
    text_tokens: int = 1024
    beam: int = 16
    n_best: int = 16
    most_tokens: int = 512
    count: int = 8
    body_bytes: int = 65_536
    image_bytes: int = 10_000_000
    image_pixels: int = 25_000_000
    request_pixels: int = 50_000_000
    image_s: float = 5.0
    held_bytes: int = 200_000_000
    look_bytes: int = 10_000_000
    queue: int = 64
    batch: int = 32
    wait_ms: float = 0.0
    deadline_s: float = 30.0
    header_s: float = 5.0
    body_s: float = 10.0
    write_s: float = 10.0
    grace_s: float = 10.0
    hang_s: float = 60.0
    connections: int = 512
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        whole = [field.name for field in fields(self) if field.type is int]
        check_positive(self, *whole)
        if self.wait_ms < 0:
            raise ConfigError(f"wait_ms={self.wait_ms} must be 0 (take what is there) or more")
        for name in ("deadline_s", "image_s", "header_s", "body_s", "write_s", "grace_s", "hang_s"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name}={getattr(self, name)} must be above 0 and finite")
        if self.held_bytes < max(self.body_bytes, self.image_bytes):
            raise ConfigError(
                f"held_bytes={self.held_bytes} is less than one body may have: raise it, or lower "
                f"body_bytes={self.body_bytes} and image_bytes={self.image_bytes}"
            )
        if self.look_bytes < 100_000:
            raise ConfigError(f"look_bytes={self.look_bytes} must be at least 100000")
