"""The state that checkpoints keep beside model, optimizer and step."""

import dataclasses


@dataclasses.dataclass
class Progress:
    """The progress of a run; each command adds its own fields.

    Checkpoints store the fields as JSON, by name.
    """

    # Number of steps so far whose loss or gradient was not finite.
    skipped_steps: int = 0
