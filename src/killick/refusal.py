"""The one error that a user can cause; apart from `types`, so that a command without tensors need not load torch."""

from typing import Any


class Refusal(ValueError):
    """What the user asked for cannot be done; the message is one sentence that says what was given and what to do."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Whatever a kind of refusal is made from, another process is told its sentence and what it holds."""
        return again, (type(self), self.args), self.__dict__


def again(kind: type[Refusal], args: tuple[Any, ...]) -> Refusal:
    """A refusal that another process met, without what its kind would make it from."""
    return kind.__new__(kind, *args)
