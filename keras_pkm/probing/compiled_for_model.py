"""Compiled functions of a model whose variables may be replaced."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras

from keras_pkm.ops.tensors import Tensor


class CompiledForModel:
    """Compiles a function when it is needed, and again for other variables.

    `quantize` and `enable_lora` give a model other variables, which a function
    that was compiled before does not use.

    Args:
        model: The model.
        compiled: Returns the compiled function.
        others: Returns further objects that the function depends on.
    """

    def __init__(
        self,
        model: keras.Model,
        compiled: Callable[[], Callable[..., list[Tensor]]],
        others: Callable[[], Sequence[Any]] = lambda: (),
    ):
        self._model = model
        self._compiled = compiled
        self._others = others
        self._made: Callable[..., list[Tensor]] | None = None
        # Kept, since a new object may have the id of one that is gone.
        self._made_for: list[Any] = []

    def __call__(self, *arguments: Any) -> list[Tensor]:
        present = [*self._model.variables, *self._others()]
        if self._made is None or [*map(id, present)] != [
            *map(id, self._made_for)
        ]:
            self._made, self._made_for = self._compiled(), present
        return self._made(*arguments)
