"""Cuts paragraphs into windows with their question, in training and serving.

These functions run eagerly, too. Their graphs are portable.
"""

import dataclasses

import tensorflow as tf

from keras_pkm.text.special_tokens import SpecialTokens


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


@dataclasses.dataclass(frozen=True)
class Windows:
    """Windows of some questions."""

    # Dict of int32 tensors of shape `(windows, sequence_length)`, by TF Hub's
    # names.
    inputs: dict[str, tf.Tensor]
    # Int32 of shape `(windows,)`: the question's number.
    examples: tf.Tensor
    # Int32 of shape `(windows, sequence_length)`: the number of each token in
    # its paragraph, -1 outside of the paragraph.
    tokens: tf.Tensor
    # Bool, likewise: whether no other window of the question has more context
    # around the token.
    in_the_middle: tf.Tensor


def make_windows(
    questions: tf.RaggedTensor,
    paragraphs: tf.RaggedTensor,
    sizes: WindowSizes,
    special: SpecialTokens,
) -> Windows:
    """Lays out all questions with their paragraphs.

    A window begins every `stride` tokens of a paragraph, up to the first window
    that reaches its end. A token's context in a window is the smaller of the
    numbers of tokens to its left and to its right, plus a hundredth of the
    window's length. A question is cut if it leaves less than a quarter of a
    window for the paragraph.
    """
    length = sizes.sequence_length
    around = 2 + len(special.between)
    questions = questions[:, : (length - around) * 3 // 4]
    heads = tf.cast(questions.row_lengths(), "int32") + around - 1
    counts = tf.cast(paragraphs.row_lengths(), "int32")
    rooms = length - 1 - heads
    steps = tf.minimum(sizes.stride, rooms)
    more = tf.maximum(counts - rooms, 0)
    windows = 1 + (more + steps - 1) // steps

    # From here on everything has one row for each window.
    examples = tf.repeat(tf.range(tf.size(windows)), windows)
    numbers = tf.ragged.range(windows).flat_values
    head, count, room, step = (
        tf.gather(values, examples)[:, None]
        for values in (heads, counts, rooms, steps)
    )
    first = numbers[:, None] * step
    last = tf.minimum(first + room, count)
    places = tf.range(length)[None]
    tokens = first + places - head
    end = head + last - first
    is_paragraph = (places >= head) & (places < end)

    ids = tf.concat(
        [
            tf.fill((tf.size(windows), 1), special.start),
            questions,
            tf.tile(
                tf.constant(special.between, "int32")[None],
                (tf.size(windows), 1),
            ),
        ],
        1,
    ).to_tensor(special.padding, shape=(None, length))
    ids = tf.gather(ids, examples)
    starts = tf.cast(tf.gather(paragraphs.row_starts(), examples), "int32")
    # Padded, for paragraphs without tokens.
    values = tf.pad(paragraphs.flat_values, [[0, 1]])
    of_paragraph = tf.gather(
        values, tf.where(is_paragraph, starts[:, None] + tokens, 0)
    )
    ids = tf.where(is_paragraph, of_paragraph, ids)
    ids = tf.where(places == end, special.end, ids)
    second = (places >= head) & (places <= end)

    def context(shift: int) -> tf.Tensor:
        """A token's context in the window that is `shift` windows later."""
        other = first + shift * step
        other_last = tf.minimum(other + room, count)
        around = tf.minimum(tokens - other, other_last - 1 - tokens)
        # In float64, as BERT's code for SQuAD: rounding decides which of two
        # windows counts whose sums are almost equal.
        found = tf.cast(around, "float64") + 0.01 * tf.cast(
            other_last - other, "float64"
        )
        is_there = (
            (other <= tokens)
            & (tokens < other_last)
            & (other >= 0)
            & ((other == 0) | (other - step + room < count))
        )
        return tf.where(is_there, found, tf.constant(-1.0, "float64"))

    # The context grows up to the best window and shrinks after it; of equal
    # windows the first one counts.
    here = context(0)
    return Windows(
        {
            "input_word_ids": ids,
            "input_mask": tf.cast(places <= end, "int32"),
            "input_type_ids": tf.where(second, special.second_segment, 0),
        },
        examples,
        tf.where(is_paragraph, tokens, -1),
        is_paragraph & (here > context(-1)) & (here >= context(1)),
    )


def best_spans(
    windows: Windows,
    count: tf.Tensor,
    start_logits: tf.Tensor,
    end_logits: tf.Tensor,
    sizes: WindowSizes,
    best: int = 20,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds the best answer of each question, over all its windows."""
    best = min(best, sizes.sequence_length)
    lowest = tf.float32.min
    starts, ends = (
        tf.math.top_k(tf.where(allowed, logits, lowest), best)
        for logits, allowed in (
            (start_logits, windows.in_the_middle),
            (end_logits, windows.tokens >= 0),
        )
    )
    firsts = tf.gather(windows.tokens, starts.indices, batch_dims=1)
    lasts = tf.gather(windows.tokens, ends.indices, batch_dims=1)
    firsts, lasts = firsts[:, :, None], lasts[:, None]
    possible = (
        (starts.values > lowest)[:, :, None]
        & (ends.values > lowest)[:, None]
        & (firsts <= lasts)
        & (lasts < firsts + sizes.answer_length)
    )
    logits = tf.where(
        possible, starts.values[:, :, None] + ends.values[:, None], lowest
    )
    shape = tf.shape(logits)
    per_window = shape[1] * shape[2]

    def of_questions(values: tf.Tensor, default: float) -> tf.Tensor:
        rows = tf.RaggedTensor.from_value_rowids(
            tf.reshape(tf.broadcast_to(values, shape), (-1, per_window)),
            tf.cast(windows.examples, "int64"),
            tf.cast(count, "int64"),
        ).merge_dims(1, 2)
        # One more column: without questions there would be none.
        return tf.pad(
            rows.to_tensor(default), [[0, 0], [0, 1]], constant_values=default
        )

    logits = of_questions(logits, lowest)
    answers = tf.argmax(logits, 1, "int32")
    found = tf.reduce_max(logits, 1) > lowest
    first, last = (
        tf.where(
            found,
            tf.gather(of_questions(values, -1), answers, batch_dims=1),
            -1,
        )
        for values in (firsts, lasts)
    )
    scores = tf.reduce_max(tf.nn.softmax(logits), 1)
    return first, last, tf.where(found, scores, 0.0)
