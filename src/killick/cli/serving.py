"""`killick serve`: one small server with the practice API and the pages."""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from killick.cli.listening import LOOPBACK, address, answer, check_port, listening
from killick.cli.stores import absent
from killick.flags import gathered, settings
from killick.refusal import Refusal

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI

    from killick.cli.practising_own import Own

ABOUT = """Serve on this machine until Ctrl-C: pages, and the practice API (preferences, a reviewer, a chat model,
reward models), which docs/api.md describes. --reward DIR and --model DIR add models of your own, under the names of
their folders. Another address than the loopback is refused: nothing asks who calls.
Without a port, in Python: fastapi.testclient.TestClient(killick.cli.serving.app())."""


@dataclass(frozen=True)
class Serve:
    """Where to listen, and what to serve beside.

    Attributes:
        port: of the loopback address; 0 takes a free one.
        host: the address; only the loopback's.
        labels: also serve the labelling page of this store, an SQLite file or a postgresql:// URL.
        reward: folders of reward models that /v1/reward is to offer.
        model: folders of language models that /v1/generate is to offer.
    """

    port: int = 8000
    host: str = "127.0.0.1"
    labels: str | None = None
    reward: tuple[Path, ...] = ()
    model: tuple[Path, ...] = ()

    def validate(self) -> None:
        """Refuse what cannot be served.

        Raises:
            Refusal: at a port, an address or a store that cannot be.
        """
        check_port(self.port)
        if self.host not in LOOPBACK:
            raise Refusal(f"--host {self.host} is not the loopback address; use 127.0.0.1.")
        if self.labels is not None and absent(self.labels):
            raise Refusal(f"There is no store {self.labels}; killick label FILE or --world W begins one.")


def serve(given: list[str]) -> None:
    """`killick serve`: put the parts together and listen."""
    given = gathered(gathered(given, "--reward"), "--model")
    options = settings("serve", Serve, given=given, about=ABOUT)
    options.validate()
    try:
        import torch
        import uvicorn  # noqa: F401 - whether it is there is asked before anything is said

        torch.set_num_threads(1)  # as in every killick process: small models lose more by waiting than they gain
        with labelled(options) as desk, listening(options.host, options.port) as door:
            served = app(desk, hosts=LOOPBACK, own=own(options))
            print(greeting(address(options.host, door), options), flush=True)
            answer(served, door)
            print("Stopped.", flush=True)
    except ModuleNotFoundError as error:
        extra = "web" if options.labels is None else "web,prefs"
        raise Refusal(f"killick serve needs {error.name}, which is missing: pip install 'killick[{extra}]'.") from error
    if threading.active_count() > 1:
        # A thread still works for somebody who is gone; what it would keep is kept whole or not at all.
        os._exit(0)


@contextmanager
def labelled(options: Serve) -> "Iterator[list[APIRouter]]":
    """The labelling page, where there is a store, which is open meanwhile."""
    if options.labels is None:
        yield []
        return
    from killick.cli.label_page import who_labels
    from killick.preferences.store import Store
    from killick.web.labelling import labelling
    from killick.web.people import Desk

    with Store(options.labels) as store:
        alone = who_labels(store, None, host=options.host, place=options.labels)
        yield [labelling(Desk(store, alone=alone))]


def own(options: Serve) -> "Own":
    """The person's own models, read now, so that what cannot be served is told at once."""
    from killick.cli.practising import TAKEN
    from killick.cli.practising_own import Own, judges, speaks

    return Own(speaks(options.model, taken=TAKEN), judges(options.reward, taken=TAKEN))


def app(more: "Sequence[APIRouter]" = (), *, hosts: Sequence[str] = (), own: "Own | None" = None) -> "FastAPI":
    """The server's app, to call in this process or to listen with.

    Args:
        more: parts beside those that need nothing.
        hosts: names under which it may be called; any where there are none.
        own: models of a person's own.

    Raises:
        ModuleNotFoundError: where the extra web is missing.
    """
    from killick.cli.practising import offers
    from killick.web.app import build
    from killick.web.leash import leash
    from killick.web.practice import practice

    offered = offers() if own is None else offers(models=own.models, rewards=own.rewards)
    return build([practice(offered), leash(), *more], hosts=hosts)


def greeting(where: str, options: Serve) -> str:
    """What stands on the terminal while the server runs."""
    lines = [
        f"Pages   {where}/",
        f"API     {where}/docs",
        f"Try     curl '{where}/v1/preferences?limit=2'",
        *([f"Label   {where}/label"] if options.labels is not None else []),
        *(f"Reward  {where}?model={quote(folder.resolve().name)}" for folder in options.reward),
        "Ctrl-C stops.",
    ]
    return "\n".join(lines)
