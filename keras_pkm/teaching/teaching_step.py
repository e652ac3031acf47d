"""Training steps of a model in inference mode."""

import math
import warnings
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_pkm.ops.backend import backend
from keras_pkm.ops.implementation import fastest_by_default
from keras_pkm.ops.tensors import Gradient
from keras_pkm.ops.tensors import Tensor
from keras_pkm.probing.compiled_for_model import CompiledForModel
from keras_pkm.probing.model_batches import Batch
from keras_pkm.probing.model_batches import ModelBatches
from keras_pkm.trainers.default_optimizer import with_loss_scale


class NothingLearnedError(ValueError):
    """No step of a pass over the batches has a gradient."""


def make_teaching_step(
    model: keras.Model,
    variables: Sequence[keras.Variable],
    optimizer: keras.optimizers.Optimizer,
    loss: keras.losses.Loss | None,
) -> Callable[[Any, Any, Any], float]:
    """Returns a function that takes one step.

    The model runs as in inference: without dropout, and with the moving
    statistics of batch norms. Its compiled optimizer and loss, and which of its
    variables are trainable, remain unchanged.

    Args:
        model: Any built Keras model.
        variables: The variables to train.
        optimizer: A new optimizer, made in the scope of the model's strategy.
        loss: A loss, or `None` for the one that the model is compiled with.

    Returns:
        A function of features, labels and sample weights (or `None`), which
        returns the largest absolute entry of the gradients: 0 if the step
        changes nothing, and infinity if they are not finite, so that the
        optimizer skips the step.
    """
    if loss is None and not model.compiled:
        raise ValueError(
            "`loss` must be given for a model that is not compiled. Received: "
            "None."
        )
    check_gradients(model)
    strategy = strategy_of_one_device(model)
    with strategy.scope():
        optimizer = with_loss_scale(optimizer, model)
        optimizer.build(variables)

    def take_step(x: Any, y: Any, sample_weight: Any) -> list[Tensor]:
        def compute_loss() -> Tensor:
            with fastest_by_default():
                predicted = model(x, training=False)
            if loss is None:
                value = model.compute_loss(
                    x, y, predicted, sample_weight, training=False
                )
            else:
                value = loss(y, predicted, sample_weight)
            return optimizer.scale_loss(value)

        gradients = backend.gradients(compute_loss, variables)
        if all(gradient is None for gradient in gradients):
            return [ops.zeros(())]
        optimizer.apply(gradients, variables)
        return [ops.max(ops.stack([_largest(each) for each in gradients]))]

    step = CompiledForModel(
        model,
        lambda: backend.compiled(
            take_step, [*model.variables, *optimizer.variables], strategy
        ),
        # The model may be compiled with another loss later.
        lambda: [model._compile_loss] if loss is None else [],
    )
    return lambda *batch: float(step(*batch)[0])


def check_gradients(model: keras.Model) -> None:
    """Checks that Keras computes the right gradients for a model.

    A quantized embedding that is also the head has those of the scales of its
    inputs alone. Whether it is the head cannot be seen, so all are refused.

    Raises:
        ValueError: the model has a quantized `ReversibleEmbedding`.
    """
    for layer in model._flatten_layers():
        mode = getattr(layer, "quantization_mode", None)
        if isinstance(layer, keras.layers.ReversibleEmbedding) and mode:
            raise ValueError(
                "A model must not be quantized before it is taught, because "
                "Keras computes a wrong gradient for a quantized embedding "
                f"that is also the head. Received: `{layer.name}` in {mode}. "
                "Teach the model, and call `quantize` afterwards."
            )


def strategy_of_one_device(model: keras.Model) -> Any:
    """Returns the strategy of a model, which must keep it on one device.

    The optimizer has to be made in its scope.

    Raises:
        ValueError: the model is on several devices, or is used in the scope of
            a strategy in which it was not made.
    """
    strategy = backend.strategy_of(model)
    if strategy.num_replicas_in_sync > 1:
        raise ValueError(
            "`model` must be on one device. Received: one on "
            f"{strategy.num_replicas_in_sync}, built under a `tf.distribute` "
            "strategy. Load it outside of the strategy's scope."
        )
    return strategy


def _largest(gradient: Gradient | None) -> Tensor:
    """The largest absolute entry of a gradient; infinity for NaN."""
    if gradient is None:
        return ops.zeros(())
    size = ops.abs(ops.cast(backend.entries(gradient), "float32"))
    # There may be no entry at all.
    return ops.max(ops.where(ops.isfinite(size), size, math.inf), initial=0.0)


def take_steps(
    step: Callable[[Any, Any, Any], float],
    batches: ModelBatches,
    steps: int,
    until: Callable[[], bool] | None = None,
) -> int:
    """Takes a step on each batch, repeating the batches.

    If no step of a whole pass changes anything, no later pass would.

    Args:
        step: A function of `make_teaching_step`.
        batches: The batches.
        steps: The maximum number of steps.
        until: Called before each step; a true result ends the steps.

    Returns:
        The number of steps that were taken.

    Raises:
        NothingLearnedError: the gradients of all steps are zero.
        ValueError: there is no batch, a batch has no labels, or batches that
            can be read only once end before `steps`.
    """
    largest: list[float] = []
    stream = _over_and_over(batches, steps, largest)
    while len(largest) < steps:
        if until is not None and until():
            return len(largest)
        largest.append(step(*next(stream)))
    _check_changes(largest)
    return len(largest)


def _over_and_over(
    batches: ModelBatches, steps: int, largest: list[float]
) -> Iterator[Batch]:
    """Yields the batches repeatedly, as long as steps change something."""
    while True:
        count = 0
        for batch in batches.one_pass():
            if batch[1] is None:
                raise ValueError(
                    "`batches` must consist of tuples `(x, y)` or "
                    "`(x, y, sample_weight)`. Received: a batch without "
                    "labels. Pass arrays as `(x, y)`, and a single batch as "
                    "`[(x, y)]`."
                )
            count += 1
            yield batch
        if not count:
            raise batches.is_empty()
        if batches.is_read_once:
            raise ValueError(
                "`batches` that can be read only once, such as a generator, "
                f"must have as many as `steps`. Received: steps={steps}, and "
                f"{count} batches. Pass a list of them, which is repeated, or "
                f"steps={count}."
            )
        _check_changes(largest)


def _check_changes(largest: list[float]) -> None:
    """Checks that a step has changed something.

    Args:
        largest: The largest absolute entry of the gradients of each step.
    """
    if not largest or any(0 < each < math.inf for each in largest):
        return
    if max(largest) > 0:
        warnings.warn(
            f"Nothing was taught: in {len(largest)} steps the gradients of the "
            "taught weights were zero, or not finite. Check that the inputs "
            "and the model's weights are finite, and lower `learning_rate`.",
            RuntimeWarning,
            stacklevel=4,
        )
        return
    raise NothingLearnedError(
        "The gradient of a taught weight must not be zero at every step, or "
        f"nothing is learned. Received: {len(largest)} steps at which all "
        "gradients are zero. Likely causes: all positions are padding or have "
        "the sample weight 0; the loss is at its minimum already; or the "
        "output does not depend on the memory. With `slots`, the background "
        "may read all slots in every batch, so that none is important."
    )
