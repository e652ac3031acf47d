"""What a checkpoint keeps besides the model, the optimizer and the step."""

import dataclasses


@dataclasses.dataclass
class Progress:
    """What all commands that train keep; each command adds its own fields.

    Checkpoints store the fields as JSON, by their names.

    Attributes:
        skipped_steps: Steps whose loss or gradient was not finite so far.
    """

    skipped_steps: int = 0
