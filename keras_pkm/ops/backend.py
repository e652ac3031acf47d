"""The functions that differ by backend of Keras, chosen once.

`keras_pkm.ops.tensorflow`, `keras_pkm.ops.jax` and `keras_pkm.ops.torch` have
the same ones. All that stands above uses `keras.ops` and these alone.
"""

import importlib
from collections.abc import Callable
from collections.abc import Sequence
from typing import Any
from typing import Protocol
from typing import cast

import keras
import numpy as np

from keras_pkm.ops.tensors import Gradient
from keras_pkm.ops.tensors import Tensor


class Backend(Protocol):
    """What a backend must have.

    The gradient of a table is whatever suits the backend: `tf.IndexedSlices`,
    a dense array on JAX, a sparse tensor on torch.
    """

    #: Whether layers with memory can be compiled by XLA, or by torch.
    SUPPORTS_JIT: bool

    def embedding_bag(
        self,
        table: Any,
        slots: Tensor,
        weights: Tensor,
        implementation: str,
    ) -> Tensor:
        """See `keras_pkm.ops.embedding_bag`."""

    def search(
        self,
        find: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
        queries: Tensor,
        sub_keys: Tensor,
        implementation: str,
    ) -> tuple[Tensor, Tensor]:
        """Returns what `find` returns, with a gradient that may be faster."""

    def reduce_gradients(
        self,
        gradients: Sequence[Gradient],
        of_tables: Sequence[bool],
        reduction: str,
    ) -> list[Gradient]:
        """Returns gradients summed over replicas; tables have each row once.

        Args:
            gradients: The gradients of this replica.
            of_tables: Whether each gradient belongs to a value table.
            reduction: `"sparse"` to send the rows of tables that were read,
                `"dense"` to send whole tables.
        """

    def entries(self, gradient: Gradient) -> Tensor:
        """Returns the entries of a gradient; those of other rows are zero."""

    def with_entries(self, gradient: Gradient, entries: Tensor) -> Gradient:
        """Returns a gradient with other entries in the same rows."""

    def keep_rows(self, gradient: Gradient, kept: Any) -> Gradient:
        """Sets rows of a table's gradient to zero.

        Args:
            gradient: A result of `reduce_gradients`.
            kept: bool variable of shape `(num_slots,)`: the rows to keep.
        """

    def update_rows(
        self,
        tables: tuple[Any, ...],
        gradient: Gradient,
        rule: Callable[..., tuple[Tensor, ...]],
    ) -> None:
        """Replaces the rows of some tables that were read.

        A row counts as read if its gradient is not all zero. Rows that only
        padding read do not count.

        Args:
            tables: The values, of shape `(num_slots, width)`, and others with
                as many rows: of the same width, or a single column.
            gradient: A result of `reduce_gradients`.
            rule: A pure function. It takes the gradients of some rows, and
                then the same rows of each table. It returns the new rows, in
                the order of the tables.
        """

    def update_if(
        self,
        condition: Tensor,
        update: Callable[[keras.Variable, Any, Gradient, Tensor], None],
        variables: Sequence[keras.Variable],
        gradients: Sequence[Gradient],
        rate: Tensor,
        state: Sequence[keras.Variable],
    ) -> None:
        """Updates variables, or leaves everything as it is.

        Args:
            condition: bool scalar, the same on all replicas.
            update: A function of a variable, of what is to be changed of it
                (the variable itself, or its component on one device), of its
                gradient and of the rate.
            variables: The variables.
            gradients: Their gradients.
            rate: float scalar.
            state: All variables that `update` changes besides.
        """

    def uncompiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Returns a function that compiled steps call without compiling it.

        It needs to be only where a compiler knows no sparse tensors.
        """

    def sum_over_replicas(self, tensors: Any) -> Any:
        """Returns a tensor, or a list of them, summed over all replicas."""

    def strategy_of(self, model: keras.Model) -> Any:
        """Returns the strategy in whose scope a model was made.

        What is made to work on the model's variables, such as an optimizer,
        has to be made in the same scope.

        Returns:
            A `tf.distribute.Strategy`, or a
            `keras_pkm.ops.one_device.OneDevice`.

        Raises:
            ValueError: the scope of another strategy is open, or only some of
                the model's weights were made in that of its own.
        """

    def components(self, variable: keras.Variable) -> tuple[Any, ...]:
        """Returns the variables behind one, one for each replica."""

    def read_rows(self, component: Any, rows: Any) -> Any:
        """Returns some rows of a component of a table, as a numpy array."""

    def write_rows(self, component: Any, rows: Any, values: Any) -> None:
        """Replaces some rows of a component of a table, and no others."""

    def compiled(
        self,
        step: Callable[..., list[Tensor]],
        variables: Sequence[keras.Variable],
        strategy: Any,
        inputs: Any = None,
    ) -> Callable[..., list[Tensor]]:
        """Returns a faster function; tensors that it returns are summed.

        Args:
            step: A function of nested tensors that returns a list of tensors,
                which are summed over replicas.
            variables: All variables that it reads or changes.
            strategy: The strategy on whose replicas it runs.
            inputs: The symbolic tensors of the only argument, whose dimensions
                may then vary without tracing it anew, where the backend can.
        """

    def gradients(
        self,
        compute: Callable[[], Tensor],
        variables: Sequence[keras.Variable],
    ) -> list[Gradient | None]:
        """Returns the gradients of a scalar, inside of a `compiled` step.

        Args:
            compute: A function that returns the scalar. It changes no
                variable.
            variables: The variables; they need not be trainable.
        """

    def present_value(self, variable: keras.Variable) -> np.ndarray | None:
        """Returns what a variable contains while a step is traced.

        Returns:
            A numpy array, or `None` if that is not known.
        """

    def is_known(self, tensor: Tensor) -> bool:
        """Whether a tensor has values already: it is not being traced."""

    def assert_later(self, is_right: Tensor, rule: str, values: Tensor) -> None:
        """Checks values that are not known yet, if the backend can.

        Args:
            is_right: bool tensor.
            rule: The rule that the values have to follow, for the error.
            values: The values, for the error.
        """


def _choose() -> Backend:
    name = keras.backend.backend()
    if name not in ("tensorflow", "jax", "torch"):
        raise ImportError(
            "keras_pkm needs the backend tensorflow, jax or torch of Keras. "
            f"Received: '{name}'. Set the environment variable KERAS_BACKEND, "
            "or `backend` in ~/.keras/keras.json, before Keras is imported."
        )
    return cast(Backend, importlib.import_module(f"keras_pkm.ops.{name}"))


#: The functions of the backend that Keras uses.
backend: Backend = _choose()
