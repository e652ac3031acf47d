"""Product-key memory in float64 by brute force: scores all slots, reads all."""

import numpy as np
import tensorflow as tf


def brute_force_memory(weights, inputs, mask, config, training):
    """Outputs of the layer, the slots read, and how clear the choice was.

    Args:
        weights: dict of float64 tensors, by the names of the layer's weights.
        inputs: float64 tensor of shape `(tokens, dim)`.
        mask: bool array of shape `(tokens,)`.
        config: the layer's `get_config()`.
        training: bool.

    Returns:
        Outputs `(tokens, dim)`, slots `(tokens, heads, top_k)`, and the gaps
        `(tokens, heads)` between the last slot read and the next best.
    """
    heads, top_k = config["num_heads"], config["top_k"]
    key_dim = config["key_dim"]
    half = key_dim // 2

    queries = inputs @ weights["query_projection/kernel"]
    queries += weights["query_projection/bias"]
    if config["query_normalization"] == "batch":
        if training:
            tokens = tf.boolean_mask(queries, mask)
            mean, variance = tf.nn.moments(tokens, 0)
        else:
            mean = weights["query_normalization/moving_mean"]
            variance = weights["query_normalization/moving_variance"]
        queries = (queries - mean) / tf.sqrt(variance + 1e-5)
        queries = queries * weights["query_normalization/gamma"]
        queries += weights["query_normalization/beta"]
    queries = tf.reshape(queries, (-1, heads, key_dim))
    if config["query_normalization"] == "layer":
        mean, variance = tf.nn.moments(queries, -1, keepdims=True)
        queries = (queries - mean) / tf.sqrt(variance + 1e-3)
        queries = queries * weights["query_normalization/gamma"]
        queries += weights["query_normalization/beta"]

    outputs, all_slots, all_gaps = 0, [], []
    for head in range(heads):
        first, second = tf.unstack(weights["sub_keys"][head])
        # The keys of all n² slots, each as one vector.
        n = first.shape[0]
        keys = tf.concat(
            [tf.repeat(first, n, axis=0), tf.tile(second, (n, 1))], axis=1
        )
        scores = queries[:, head, : 2 * half] @ tf.transpose(keys)
        order = np.argsort(-scores.numpy(), axis=-1, kind="stable")
        slots = order[:, :top_k]
        read = np.zeros(scores.shape, bool)
        np.put_along_axis(read, slots, True, axis=-1)
        attention = tf.nn.softmax(tf.where(read, scores, -np.inf))
        outputs += attention @ weights["table/values"]
        ranked = np.take_along_axis(scores.numpy(), order, -1)
        gaps = (
            ranked[:, top_k - 1] - ranked[:, top_k]
            if top_k < n * n
            else np.full(len(ranked), np.inf)
        )
        all_slots.append(slots)
        all_gaps.append(gaps)
    if "output_projection/kernel" in weights:
        outputs @= weights["output_projection/kernel"]
    outputs = tf.where(mask[:, None], outputs, 0)
    return outputs, np.stack(all_slots, 1), np.stack(all_gaps, 1)
