"""Marks variables as tables of values, whatever layer owns them."""

import keras

_MARK = "_is_value_table"


def mark_as_table(variable: keras.Variable) -> None:
    """Marks a variable as a value table, of which a step reads a few rows.

    As with a `keras_pkm.layers.ValueTable`, `keras_pkm.optimizers.PKMAdam` then
    trains only the rows that a batch has read, and leaves the others unchanged.
    Call this function before the optimizer is built. The
    mark is not saved with a model: a layer that marks its variable in `build`
    marks it again when the model is loaded.

    Args:
        variable: `keras.Variable` of shape `(rows, width)`.

    Example:

    >>> embedding = keras.layers.Embedding(1000, 16)
    >>> embedding.build()
    >>> keras_pkm.ops.mark_as_table(embedding.embeddings)
    """
    setattr(variable, _MARK, True)


def is_table(variable: keras.Variable) -> bool:
    """Whether a variable is marked as a value table."""
    return getattr(variable, _MARK, False)
