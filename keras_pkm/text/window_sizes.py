"""How questions and paragraphs are laid out, to train and to serve."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class WindowSizes:
    """How inputs are laid out.

    Attributes:
        sequence_length: Tokens of an input, special ones included.
        stride: Tokens of a paragraph from one window's first to the next's.
        answer_length: The most tokens of a predicted answer.
    """

    sequence_length: int = 384
    stride: int = 128
    answer_length: int = 30
