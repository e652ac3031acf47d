"""What an evaluation on dev sets has found."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """Figures, and what a model said.

    Attributes:
        figures: dict of floats from 0 to 1, or losses.
        files: dict from names of files to their text.
    """

    figures: dict[str, float]
    files: dict[str, str] = dataclasses.field(default_factory=dict)
