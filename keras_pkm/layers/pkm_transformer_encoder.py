"""A Transformer encoder layer with a memory beside its FFN or in its place."""

from typing import Any

import keras
import keras_hub
from keras import ops

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.layers.make_memory import make_memory
from keras_pkm.layers.make_memory import memory_config
from keras_pkm.layers.memory import freeze_parts
from keras_pkm.ops.arguments import check_activity_regularizer
from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.arguments import positive_int
from keras_pkm.ops.tensors import Tensor
from keras_pkm.ops.tensors import keras_mask

#: (α, β) of x' = LN(x + α·FFN(x) + β·PKM(x)).
BLOCKS = {"ffn": (1, 0), "pkm": (0, 1), "resm": (1, 1)}
# The sublayers of `keras_hub.layers.TransformerEncoder`.
_SUBLAYERS = (
    "_self_attention_layer",
    "_self_attention_layer_norm",
    "_self_attention_dropout",
    "_feedforward_layer_norm",
)
_FEEDFORWARD = (
    "_feedforward_intermediate_dense",
    "_feedforward_output_dense",
    "_feedforward_dropout",
)


@keras.saving.register_keras_serializable("keras_pkm")
class PKMTransformerEncoder(keras_hub.layers.TransformerEncoder):
    """Transformer encoder layer whose second half may have a memory.

    After self-attention, the layer computes

        x' = LN(x + α·FFN(x) + β·PKM(x))

    with (α, β) = (1, 0) for the block `"ffn"`, the plain encoder; (0, 1) for
    `"pkm"`, which replaces the feed-forward network by a memory;
    and (1, 1) for `"resm"` (residual memory), which adds the memory beside it.
    There is one layer normalization; memory and FFN read the same x; and the
    FFN's dropout applies to the FFN alone. `"ffn"` equals
    `keras_hub.layers.TransformerEncoder`, and sublayers common to all blocks
    are named as in that layer.

    Args:
        intermediate_dim: int. Width of the feed-forward network.
        num_heads: int. Attention heads.
        block: `"ffn"`, `"pkm"` or `"resm"`. Defaults to `"ffn"`.
        memory: optional. A `keras_pkm.layers.Memory`, of which the layer gets
            a copy with weights of its own; the config of one; or a dict of
            arguments of `keras_pkm.layers.ProductKeyMemory`. Defaults to an
            empty dict.
        **kwargs: further arguments of
            `keras_hub.layers.TransformerEncoder`: `dropout`, `activation`,
            `layer_norm_epsilon`, `kernel_initializer`, `bias_initializer`,
            `normalize_first`, `name`, `dtype`.

    Call arguments:
        inputs: float tensor of shape `(batch, length, dim)`.
        padding_mask: optional tensor of shape `(batch, length)`, true or 1 at
            tokens, false or 0 at padding.
        attention_mask: optional tensor of shape `(batch, length, length)`.
        training: bool. Whether dropout and batch norm act as in training.
        return_attention_scores: bool. Whether to return the attention scores,
            too. Defaults to `False`.
        return_memory_access: bool. Whether to return the memory access
            `(slots, weights)`, too, see `keras_pkm.layers.Memory`.
            Not for the block `"ffn"`. Defaults to `False`.
        token_ids: int tensor of shape `(batch, length)`, for kinds of memory
            that need them, see `keras_pkm.layers.Memory`.

    Returns:
        A tensor of shape `(batch, length, dim)`; or a tuple of it, the
        attention scores if requested, and the memory access if requested.

    Example:

    >>> encoder = keras_pkm.layers.PKMTransformerEncoder(
    ...     intermediate_dim=256,
    ...     num_heads=4,
    ...     block="resm",
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ... )
    >>> encoder(np.random.normal(size=(2, 10, 64))).shape
    TensorShape([2, 10, 64])

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881), section 3.2.
    """

    def __init__(
        self,
        intermediate_dim: int,
        num_heads: int,
        block: str = "ffn",
        memory: MemoryTemplate = None,
        **kwargs: Any,
    ):
        kwargs["dropout"] = fraction("dropout", kwargs.get("dropout", 0))
        if "layer_norm_epsilon" in kwargs:
            kwargs["layer_norm_epsilon"] = finite(
                "layer_norm_epsilon", kwargs["layer_norm_epsilon"], least=0
            )
        super().__init__(
            intermediate_dim=positive_int("intermediate_dim", intermediate_dim),
            num_heads=positive_int("num_heads", num_heads),
            **kwargs,
        )
        self.block = one_of("block", block, tuple(BLOCKS))
        self.memory = None
        if memory is not None and not BLOCKS[block][1]:
            raise ValueError(
                f"`memory` must be None for a block without memory. Received: "
                f"memory={memory!r}, block={block!r}. Pass block='resm', for "
                "instance."
            )
        if BLOCKS[block][1]:
            self.memory = make_memory(memory, self.dtype_policy)

    @property
    def _uses_ffn(self) -> bool:
        return BLOCKS[self.block][0] == 1

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        dim = inputs_shape[-1]
        if dim is None or dim < self.num_heads:
            raise ValueError(
                "`num_heads` must be at most the known width of the inputs. "
                f"Received: num_heads={self.num_heads}, "
                f"inputs_shape={inputs_shape}."
            )
        # A plain encoder's sublayers may be there already, to be shared.
        if not hasattr(self, "_self_attention_layer"):
            if self._uses_ffn:
                super().build(inputs_shape)
            else:
                plain = keras_hub.layers.TransformerEncoder(
                    self.intermediate_dim,
                    self.num_heads,
                    dropout=self.dropout,
                    activation=self.activation,
                    layer_norm_epsilon=self.layer_norm_epsilon,
                    kernel_initializer=self.kernel_initializer,
                    bias_initializer=self.bias_initializer,
                    normalize_first=self.normalize_first,
                    dtype=self.dtype_policy,
                )
                # Not `plain.build`, whose name would stand in all paths.
                type(plain).build(plain, inputs_shape)
                self.share_sublayers(plain)
        if self.memory is not None:
            self.memory.build(inputs_shape)
        freeze_parts(self)

    def share_sublayers(
        self, encoder: keras_hub.layers.TransformerEncoder
    ) -> None:
        """Takes the sublayers of a plain encoder, and so its weights.

        With a memory instead of the FFN, the FFN's layers are left out.
        """
        for name in _SUBLAYERS + self._uses_ffn * _FEEDFORWARD:
            setattr(self, name, getattr(encoder, name))

    def call(
        self,
        inputs: Tensor,
        padding_mask: Tensor | None = None,
        attention_mask: Tensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
        return_memory_access: bool = False,
        mask: Tensor | None = None,
        token_ids: Tensor | None = None,
    ) -> Tensor | tuple[Any, ...]:
        self._check_access_request(return_memory_access)
        check_activity_regularizer(self, training, return_memory_access)
        if padding_mask is None:
            padding_mask = keras_mask(inputs) if mask is None else mask
        x, attention_scores = self._attend(
            inputs,
            _merge_masks(padding_mask, attention_mask),
            training,
            return_attention_scores,
        )

        residual = x
        if self.normalize_first:
            x = self._feedforward_layer_norm(x)
        # x' = LN(x + α·FFN(x) + β·PKM(x))
        updates = []
        if self._uses_ffn:
            updates.append(self._feedforward(x, training))
        if self.memory is not None:
            read, memory_access = self.memory(
                x,
                mask=padding_mask,
                training=training,
                return_memory_access=True,
                token_ids=token_ids,
            )
            updates.append(read)
        x = sum(updates, residual)
        if not self.normalize_first:
            x = self._feedforward_layer_norm(x)

        outputs = [x]
        if return_attention_scores:
            outputs.append(attention_scores)
        if return_memory_access:
            outputs.append(memory_access)
        return tuple(outputs) if len(outputs) > 1 else x

    def _attend(
        self,
        inputs: Tensor,
        mask: Tensor | None,
        training: bool | None,
        return_attention_scores: bool,
    ) -> tuple[Tensor, Tensor | None]:
        x = inputs
        if self.normalize_first:
            x = self._self_attention_layer_norm(x)
        attended = self._self_attention_layer(
            query=x,
            value=x,
            attention_mask=mask,
            # Only if requested: fused attention does not keep the scores.
            return_attention_scores=return_attention_scores,
            training=training,
        )
        x, scores = attended if return_attention_scores else (attended, None)
        x = self._self_attention_dropout(x, training=training) + inputs
        if not self.normalize_first:
            x = self._self_attention_layer_norm(x)
        return x, scores

    def _feedforward(self, x: Tensor, training: bool | None) -> Tensor:
        x = self._feedforward_intermediate_dense(x)
        x = self._feedforward_output_dense(x)
        return self._feedforward_dropout(x, training=training)

    def compute_output_spec(
        self,
        inputs: keras.KerasTensor,
        padding_mask: keras.KerasTensor | None = None,
        attention_mask: keras.KerasTensor | None = None,
        training: bool | None = None,
        return_attention_scores: bool = False,
        return_memory_access: bool = False,
        mask: keras.KerasTensor | None = None,
        token_ids: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | tuple[Any, ...]:
        self._check_access_request(return_memory_access)
        x = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        outputs = [x]
        if return_attention_scores:
            batch, length, _ = inputs.shape
            outputs.append(
                keras.KerasTensor(
                    (batch, self.num_heads, length, length),
                    dtype=self.compute_dtype,
                )
            )
        if return_memory_access and self.memory is not None:
            _, access = self.memory.compute_output_spec(
                x, return_memory_access=True, token_ids=token_ids
            )
            outputs.append(access)
        return tuple(outputs) if len(outputs) > 1 else x

    def _check_access_request(self, return_memory_access: bool) -> None:
        if return_memory_access and self.memory is None:
            raise ValueError(
                "`return_memory_access=True` needs a memory. Received: "
                f"block={self.block!r}. Use block='pkm' or block='resm'."
            )

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        memory = self.memory and memory_config(self.memory)
        return {**config, "block": self.block, "memory": memory}


def _merge_masks(
    padding_mask: Tensor | None, attention_mask: Tensor | None
) -> Tensor | None:
    """Returns the mask of positions that both masks allow.

    Its shape is `(batch, 1 or length, length)`; `None` if both are `None`.
    """
    if padding_mask is not None:
        padding_mask = ops.cast(ops.expand_dims(padding_mask, 1), "int32")
    if attention_mask is None:
        return padding_mask
    attention_mask = ops.cast(attention_mask, "int32")
    if padding_mask is None:
        return attention_mask
    return ops.minimum(padding_mask, attention_mask)
