"""The sizes of question-answering inputs, in training and serving."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class WindowSizes:
    """The sizes of question-answering inputs.

    Attributes:
        sequence_length: Number of tokens of an input, including special ones.
        stride: Number of paragraph tokens between the starts of two windows.
        answer_length: The maximum number of tokens of a predicted answer.
    """

    sequence_length: int = 384
    stride: int = 128
    answer_length: int = 30
