"""`killick serve`: one small server with the practice API and the pages."""

from dataclasses import dataclass

from killick.flags import settings
from killick.types import Refusal

ABOUT = """Serve on this machine until Ctrl-C. Another address than the loopback is refused: nothing asks who calls."""


@dataclass(frozen=True)
class Serve:
    """Where to listen.

    Attributes:
        port: of the loopback address.
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
        import uvicorn

        from killick.web.app import build
        from killick.web.leash import leash
    except ImportError as error:
        raise Refusal(
            f"killick serve needs the extra web ({error.name} is missing): pip install 'killick[web]'."
        ) from error
    print(f"http://{options.host}:{options.port}/  (Ctrl-C to stop)", flush=True)
    uvicorn.run(build([leash()]), host=options.host, port=options.port, log_level="warning", access_log=False)
