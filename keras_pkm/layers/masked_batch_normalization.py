"""Batch normalization that ignores padding and synchronizes replicas."""

import contextlib
import contextvars
from typing import Any

import keras
from keras import ops

from keras_pkm.layers.observing import normalizations
from keras_pkm.ops.arguments import check_mask
from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.backend import backend
from keras_pkm.ops.contexts import setting
from keras_pkm.ops.tensors import Tensor
from keras_pkm.ops.tensors import keras_mask

# A variable of the context, since replicas are computed in threads.
_parts: contextvars.ContextVar[int] = contextvars.ContextVar("parts", default=1)


def part_of_a_batch(num_parts: int) -> contextlib.AbstractContextManager[None]:
    """Lets all parts of a batch together move statistics as far as the batch.

    Args:
        num_parts: int. The number of parts.
    """
    return setting(_parts, num_parts)


@keras.saving.register_keras_serializable("keras_pkm")
class MaskedBatchNormalization(keras.layers.BatchNormalization):
    """Batch normalization over the tokens of a batch, without padding.

    It differs from `keras.layers.BatchNormalization` in three ways:

    - Moments are taken over the positions that `mask` names, *and* over all
      replicas of a `tf.distribute` strategy. (Keras does either: with a mask
      `synchronized=True` has no effect.)
    - A batch whose moments are not finite, or that contains no token at all,
      leaves the moving statistics unchanged, bit for bit: one bad batch must
      not spoil a model for good.
    - Everything is computed in float32, and the output is float32, whatever the
      dtype policy is.

    Args:
        momentum: float. Momentum of the moving statistics. Defaults to `0.9`.
        epsilon: float. Added to the variance. Defaults to `1e-5`.
        **kwargs: further arguments of `keras.layers.BatchNormalization`, except
            `axis`, `renorm` and `synchronized`: the channels come last, there
            is no renormalization, and synchronization is always on.

    Call arguments:
        inputs: float tensor of shape `(..., channels)`.
        training: bool. With `True`, the layer uses the batch's moments and
            updates the moving statistics with them; with `False`, it uses the
            moving statistics. A layer with `trainable=False` always uses the
            moving statistics.
        mask: optional bool tensor of shape `(...)`, true at tokens, false at
            padding. Padding is normalized like any token.

    Example:

    >>> layer = keras_pkm.layers.MaskedBatchNormalization()
    >>> inputs = np.array([[1.0], [3.0], [1000.0]])
    >>> mask = np.array([True, True, False])
    >>> outputs = layer(inputs, training=True, mask=mask)
    >>> np.round(outputs[:2, 0], 3)
    array([-1.,  1.], dtype=float32)
    """

    def __init__(
        self, momentum: float = 0.9, epsilon: float = 1e-5, **kwargs: Any
    ):
        for name in ("axis", "renorm", "synchronized"):
            if name in kwargs:
                raise ValueError(
                    f"`MaskedBatchNormalization` has no argument `{name}`: it "
                    "normalizes the last axis over all tokens of all replicas. "
                    f"Received: {name}={kwargs[name]}. Leave it out, or use "
                    "`keras.layers.BatchNormalization`."
                )
        super().__init__(
            momentum=fraction("momentum", momentum),
            epsilon=finite("epsilon", epsilon, least=0),
            # Half precision would round the inputs before they are normalized.
            **{"autocast": False, **kwargs},
        )

    def call(
        self,
        inputs: Tensor,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if mask is None:
            mask = keras_mask(inputs)
        check_mask(inputs, mask)
        inputs = ops.cast(inputs, "float32")
        normalizations.report(self, inputs, mask)
        if training and self.trainable:
            mean, variance, count = self._masked_moments(inputs, mask)
            self._update_moving_statistics(mean, variance, count)
        else:
            mean = ops.cast(self.moving_mean, "float32")
            variance = ops.cast(self.moving_variance, "float32")
        return ops.batch_normalization(
            inputs,
            mean,
            variance,
            axis=-1,
            offset=ops.cast(self.beta, "float32") if self.center else None,
            scale=ops.cast(self.gamma, "float32") if self.scale else None,
            epsilon=self.epsilon,
        )

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        training: bool | None = None,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor:
        return keras.KerasTensor(inputs.shape, dtype="float32")

    def _masked_moments(
        self, inputs: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance of each channel, and the number of tokens.

        The sums are taken around a first mean: E[x²] - E[x]² would lose all
        precision for channels far from zero.
        """
        if mask is None:
            mask = ops.ones(ops.shape(inputs)[:-1], "bool")
        mask = ops.cast(mask, "bool")
        axes = list(range(len(inputs.shape) - 1))
        # Not a product with the mask: padding may contain NaN.
        known = ops.where(mask[..., None], ops.stop_gradient(inputs), 0.0)
        tokens = ops.sum(ops.cast(mask, "float32"))[None]
        sums = backend.sum_over_replicas(
            ops.concatenate([ops.sum(known, axes), tokens])
        )
        shift, count = ops.split(sums, [inputs.shape[-1]])
        tokens = ops.maximum(count, 1.0)
        shift = shift / tokens
        shifted = ops.where(mask[..., None], inputs - shift, 0.0)
        sums = backend.sum_over_replicas(
            ops.stack([ops.sum(shifted, axes), ops.sum(shifted**2, axes)])
        )
        first, second = sums[0] / tokens, sums[1] / tokens
        variance = ops.maximum(second - ops.square(first), 0.0)
        return first + shift, variance, count

    def _update_moving_statistics(
        self, mean: Tensor, variance: Tensor, count: Tensor
    ) -> None:
        mean, variance = ops.stop_gradient(mean), ops.stop_gradient(variance)
        usable = ops.logical_and(
            ops.all(ops.isfinite(mean) & ops.isfinite(variance)), count[0] > 0
        )
        momentum = self.momentum ** (1 / _parts.get())
        for moving, batch in (
            (self.moving_mean, mean),
            (self.moving_variance, variance),
        ):
            old = ops.convert_to_tensor(moving)
            new = ops.cast(old, "float32") * momentum
            new += batch * (1 - momentum)
            moving.assign(ops.where(usable, ops.cast(new, old.dtype), old))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in (
            "axis",
            "renorm",
            "renorm_clipping",
            "renorm_momentum",
            "synchronized",
        ):
            config.pop(name, None)
        return config
