"""Where a server of ours listens: a free port, one sentence for a taken one, links that a browser opens."""

from socket import AF_INET6, create_server, has_ipv6, socket

import pytest

from killick.cli.listening import address, check_port, listening
from killick.refusal import Refusal


def test_port_0_is_any_that_is_free_and_the_address_names_it() -> None:
    with listening("127.0.0.1", 0) as door:
        port = door.getsockname()[1]
        assert address("127.0.0.1", door) == f"http://127.0.0.1:{port}"
        with socket() as caller:
            caller.connect(("127.0.0.1", port))


def test_a_taken_port_is_refused_with_another() -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Refusal, match=f"Port {port} of 127.0.0.1 cannot be had .*--port {port % 65535 + 1}"):
            listening("127.0.0.1", port)


def test_the_last_port_is_followed_by_the_first() -> None:
    """65,535 + 1 is no port; 203.0.113.1 (kept for documentation) is no address of this machine."""
    with pytest.raises(Refusal, match="--port 1, or"):
        listening("203.0.113.1", 65535)


def test_an_address_of_six_stands_in_brackets() -> None:
    if not has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        door = listening("::1", 0)
    except Refusal:
        pytest.skip("this machine has no IPv6 loopback")
    with door:
        assert door.family == AF_INET6
        assert address("::1", door) == f"http://[::1]:{door.getsockname()[1]}"


@pytest.mark.parametrize("port", [-1, 65536])
def test_what_is_no_port_is_refused(port: int) -> None:
    check_port(0)
    check_port(65535)
    with pytest.raises(Refusal, match=r"0\.\.65535"):
        check_port(port)
