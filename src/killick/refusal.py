"""The one error that a user can cause; apart from `types`, so that a command without tensors need not load torch."""


class Refusal(ValueError):
    """What the user asked for cannot be done; the message is one sentence that says what was given and what to do."""
