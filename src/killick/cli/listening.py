"""A server of this process: where it listens, and how it ends. `killick serve` and `killick label` share it."""

import logging
import os
from contextlib import suppress
from socket import AF_INET, AF_INET6, create_server, socket
from typing import TYPE_CHECKING

from killick.refusal import Refusal

if TYPE_CHECKING:
    from fastapi import FastAPI

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine reaches."""


def check_port(port: int) -> None:
    """Refuse what is no port.

    Raises:
        Refusal: outside 0 (any that is free) to 65535.
    """
    if not 0 <= port <= 65535:
        raise Refusal(f"--port must lie in 0..65535, not {port}.")


def listening(host: str, port: int) -> socket:
    """A socket that takes calls, before anything is said about it.

    Raises:
        Refusal: where the address is taken, or may not be had.
    """
    try:
        return create_server((host, port), family=AF_INET6 if ":" in host else AF_INET, backlog=1024)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise Refusal(
            f"Port {port} of {host} cannot be had ({reason}); give another, as in --port {port % 65535 + 1}, or "
            "--port 0 for any that is free."
        ) from error


def address(host: str, door: socket) -> str:
    """Where a browser finds the door."""
    return f"http://{f'[{host}]' if ':' in host else host}:{door.getsockname()[1]}"


def answer(app: "FastAPI", door: socket) -> None:
    """Answer until Ctrl-C. Connections outlive the pauses that people make; who is cut off is no error to tell of."""
    import uvicorn

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, timeout_keep_alive=75, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
    with suppress(KeyboardInterrupt):  # it has closed everything before it passes Ctrl-C on
        server.run(sockets=[door])
