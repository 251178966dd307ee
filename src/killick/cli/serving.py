"""`killick serve`: one small server with the practice API and the pages."""

import logging
import os
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from killick.flags import settings
from killick.types import Refusal

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI

ABOUT = """Serve on this machine until Ctrl-C: pages, and the practice API (preferences, a reviewer, a chat model,
reward models), which docs/api.md describes. Another address than the loopback is refused: nothing asks who calls.
Without a port, in Python: fastapi.testclient.TestClient(killick.cli.serving.app())."""


@dataclass(frozen=True)
class Serve:
    """Where to listen.

    Attributes:
        port: of the loopback address; 0 takes a free one.
        host: the address; only the loopback's.
    """

    port: int = 8000
    host: str = "127.0.0.1"

    def validate(self) -> None:
        """Refuse what cannot be served.

        Raises:
            Refusal: at a port or an address that cannot be.
        """
        if not 0 <= self.port <= 65535:
            raise Refusal(f"--port must lie in 0..65535, not {self.port}.")
        if self.host not in ("127.0.0.1", "localhost", "::1"):
            raise Refusal(f"--host {self.host} is not the loopback address; use 127.0.0.1.")


def serve(given: list[str]) -> None:
    """`killick serve`: put the parts together and listen."""
    options = settings("serve", Serve, given=given, about=ABOUT)
    options.validate()
    try:
        import torch
        import uvicorn

        served = app()
    except ModuleNotFoundError as error:
        raise Refusal(
            f"killick serve needs the extra web ({error.name} is missing): pip install 'killick[web]'."
        ) from error
    torch.set_num_threads(1)  # as in every killick process: small models lose more by waiting than they gain
    with listening(options) as door:
        print(greeting(options.host, door.getsockname()[1]), flush=True)
        config = uvicorn.Config(served, log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        # Whoever is cut off by Ctrl-C is no error to tell of.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        try:
            server.run([door])
        except KeyboardInterrupt:
            print("Stopped.", flush=True)
            if threading.active_count() > 1:
                # A thread still works for somebody who is gone; what it would keep is kept whole or not at all.
                os._exit(0)


def app() -> "FastAPI":
    """The server's app, to call in this process or to listen with.

    Raises:
        ModuleNotFoundError: where the extra web is missing.
    """
    from killick.web.app import build

    return build(parts())


def parts() -> "list[APIRouter]":
    """What is served, one router a line."""
    from killick.cli.practising import offers
    from killick.web.practice import practice

    return [
        practice(offers()),
    ]


def listening(options: Serve) -> socket.socket:
    """A socket that takes calls.

    Raises:
        Refusal: where the address is taken, or may not be had.
    """
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        return socket.create_server((options.host, options.port), family=family)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise Refusal(
            f"Port {options.port} of {options.host} cannot be had ({reason}); give another, as in "
            f"--port {options.port % 65535 + 1}, or --port 0 for any that is free."
        ) from error


def greeting(host: str, port: int) -> str:
    """What stands on the terminal while the server runs."""
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return "\n".join(
        (
            f"Pages   {address}/",
            f"API     {address}/docs",
            f"Try     curl '{address}/v1/preferences?limit=2'",
            "Ctrl-C stops.",
        )
    )
