"""A question answerer, from strings to an answer and its position."""

from collections.abc import Callable

import keras
import keras_hub
import tensorflow as tf

from keras_pkm.export.encoder import Encoder
from keras_pkm.export.modules.signatures import add_memory_access
from keras_pkm.export.modules.signatures import list_variables
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.tokenize import clean
from keras_pkm.text.tokenize import tokenize
from keras_pkm.text.tokenize import tokenize_with_offsets
from keras_pkm.text.windows import WindowSizes
from keras_pkm.text.windows import best_spans
from keras_pkm.text.windows import make_windows

# Windows that are computed at a time: a context may have hundreds.
_WINDOWS = 32


class SavedQuestionAnswerer(tf.train.Checkpoint):
    """The object that `hub.load` returns for a question answerer.

    It is called with a dict of `question` and `context`, strings of shape
    `(batch,)` and of any length. It returns `answer`, a part of the context;
    `start` and `end`, its first character and the one after its last; and
    `score`, its share of the probability of all candidate spans. If the context
    is empty there is no answer: the results are then empty or 0.
    """

    def __init__(
        self,
        encoder: Encoder,
        task: keras.Model,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sizes: WindowSizes,
    ):
        super().__init__()
        list_variables(self, encoder, task)
        special = SpecialTokens.of(tokenizer)

        def logits_of(
            inputs: dict[str, tf.Tensor],
        ) -> tuple[tf.Tensor, tf.Tensor]:
            with encoder.portable_reads():
                logits = task(encoder.features_of(inputs), training=False)
            return logits["start"], logits["end"]

        def call(
            question: tf.Tensor, context: tf.Tensor
        ) -> dict[str, tf.Tensor]:
            context = clean(context)
            ids, starts, ends = tokenize_with_offsets(tokenizer, context)
            questions = tokenize(tokenizer, clean(question))
            windows = make_windows(questions, ids, sizes, special)
            start_logits, end_logits = _in_parts(
                logits_of, windows.inputs, sizes.sequence_length
            )
            first, last, score = best_spans(
                windows, tf.size(context), start_logits, end_logits, sizes
            )
            start, end = _at(starts, first), _at(ends, last)
            end += marks_at(context, end)
            return {
                "answer": tf.strings.substr(
                    context, start, end - start, unit="UTF8_CHAR"
                ),
                "start": start,
                "end": end,
                "score": score,
            }

        names = ("question", "context")
        specs = [tf.TensorSpec((None,), "string", name) for name in names]
        serve = tf.function(call, input_signature=specs, autograph=False)
        self.__call__ = tf.function(
            lambda inputs: call(*(inputs[name] for name in names)),
            input_signature=[dict(zip(names, specs))],
            autograph=False,
        )
        self.signatures_to_save = {"serving_default": serve}

        def inputs_of(
            question: tf.Tensor, context: tf.Tensor
        ) -> dict[str, tf.Tensor]:
            windows = make_windows(
                tokenize(tokenizer, clean(question)),
                tokenize(tokenizer, clean(context)),
                sizes,
                special,
            )
            return windows.inputs

        add_memory_access(self, encoder, inputs_of, specs)


def marks_at(context: tf.Tensor, end: tf.Tensor) -> tf.Tensor:
    """The number of combining marks that follow an answer.

    A tokenizer that strips accents has no token for them.
    """
    size = tf.strings.length(context, unit="UTF8_CHAR")
    rest = tf.strings.substr(context, end, size - end, unit="UTF8_CHAR")
    marks = tf.strings.regex_replace(rest, r"(?s)^(\pM*).*$", r"\1")
    count = tf.strings.length(marks, unit="UTF8_CHAR")
    return tf.where(end > 0, count, 0)


def _in_parts(
    function: Callable[[dict[str, tf.Tensor]], tuple[tf.Tensor, tf.Tensor]],
    inputs: dict[str, tf.Tensor],
    length: int,
) -> list[tf.Tensor]:
    """Applies a function to `length` rows at a time, and joins the results."""

    def go_on(first: tf.Tensor, *found: tf.Tensor) -> tuple[tf.Tensor, ...]:
        part = {
            name: rows[first : first + _WINDOWS]
            for name, rows in inputs.items()
        }
        return first + _WINDOWS, *(
            tf.concat([before, new], 0)
            for before, new in zip(found, function(part))
        )

    count = tf.shape(inputs["input_word_ids"])[0]
    shape = tf.TensorShape((None, length))
    _, *found = tf.while_loop(
        lambda first, *_: first < count,
        go_on,
        (0, tf.zeros((0, length)), tf.zeros((0, length))),
        (tf.TensorShape(()), shape, shape),
        parallel_iterations=1,
    )
    return found


def _at(offsets: tf.RaggedTensor, tokens: tf.Tensor) -> tf.Tensor:
    """The offsets of one token of each text, or 0 if the token is -1."""
    # One more column: texts may have no tokens.
    offsets = tf.pad(offsets.to_tensor(), [[0, 0], [0, 1]])
    found = tf.gather(offsets, tf.maximum(tokens, 0), batch_dims=1)
    return tf.where(tokens >= 0, found, 0)
