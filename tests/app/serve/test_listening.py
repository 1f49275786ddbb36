"""Where the server is, and for how many there is room."""

import os
import resource
import socket

import pytest

from saccade.app.serve.http.protocol import SPARE
from saccade.app.serve.listening import address, bind, room_for
from saccade.errors import ConfigError


def test_the_address_is_one_that_others_can_type_into_a_browser() -> None:
    with bind("0.0.0.0", 0) as anywhere:
        host, port = address(anywhere).removeprefix("http://").split(":")
        assert (socket.inet_aton(host) != bytes(4), int(port)) == (True, anywhere.getsockname()[1])
    with bind("127.0.0.1", 0) as here:
        assert address(here) == f"http://127.0.0.1:{here.getsockname()[1]}"
    with bind("::1", 0) as six:
        assert address(six) == f"http://[::1]:{six.getsockname()[1]}"


@pytest.mark.parametrize("files", [100, 128, 256, 1024, 65_536])
def test_there_is_a_file_for_each_connection_and_for_some_that_are_on_their_way(
    monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (files, files))
    room = room_for(512)
    assert 1 <= room.connections <= 512
    taken = len(os.listdir("/dev/fd")) + room.connections + SPARE + 4 * room.at_a_time
    assert taken < files
    assert room.connections == 512 or taken > 0.7 * files


def test_too_few_files_are_told_with_the_number_that_would_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (20, 20))
    with pytest.raises(ConfigError, match=r"may open 20 files, too few .* ulimit -n \d+") as caught:
        room_for(512)
    enough = int(str(caught.value).split()[-1])
    monkeypatch.setattr(resource, "getrlimit", lambda which: (enough, enough))
    assert room_for(512).connections >= 1
