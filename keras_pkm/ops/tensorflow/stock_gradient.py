"""Kernels whose gradient is that of TensorFlow's own operations."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import forwardprop_util


def with_gradient_of(
    stock: Callable[..., tuple[tf.Tensor, ...]],
    kernel: Callable[..., tuple[tf.Tensor, ...]],
) -> Callable[..., tuple[tf.Tensor, ...]]:
    """Returns a function that computes as `kernel` and has `stock`'s gradient.

    Backward passes made of kernels have no gradient of their own, or a wrong
    one. With this, second derivatives and those of higher order are right.

    Args:
        stock: A function of tensors, made of TensorFlow's own operations.
        kernel: A function that returns the same, faster or in less memory.
    """

    @tf.custom_gradient
    def run(
        *tensors: tf.Tensor,
    ) -> tuple[tuple[tf.Tensor, ...], Callable[..., Any]]:
        def gradient(*upstream: tf.Tensor) -> list[Any]:
            copies = [tf.identity(tensor) for tensor in tensors]
            with tf.GradientTape() as tape:
                tape.watch([x for x in copies if not x.dtype.is_integer])
                outputs = stock(*copies)
            return tape.gradient(outputs, copies, upstream)

        return kernel(*map(tf.stop_gradient, tensors)), gradient

    def either(*tensors: tf.Tensor) -> tuple[tf.Tensor, ...]:
        # Tapes see only what belongs to the graph of this call. The tensors
        # themselves may belong to that of the forward pass.
        tensors = tuple(map(tf.identity, tensors))
        return (stock if in_forward_mode(*tensors) else run)(*tensors)

    return either


def in_forward_mode(*tensors: tf.Tensor) -> bool:
    """Whether a `tf.autodiff.ForwardAccumulator` follows any of the tensors.

    TensorFlow cannot derive tangents from custom gradients of variables.
    """
    return bool(forwardprop_util.pack_tangents(list(tensors)).tangents)
