"""A Transformer block of any kind, and a memory behind it."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.layers.make_memory import make_memory
from keras_pkm.layers.make_memory import memory_config
from keras_pkm.layers.memory import freeze_parts
from keras_pkm.ops.arguments import check_activity_regularizer
from keras_pkm.ops.arguments import may_be_mask_of
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Tensor

# What a block is asked besides its own arguments.
_OWN = {"training": None, "return_memory_access": False, "token_ids": None}
_PADDING_MASKS = ("padding_mask", "decoder_padding_mask", "attention_mask")
# Blocks whose masks lack the tokens of images, which stand before the text.
_WITH_IMAGES = ("PaliGemmaDecoderBlock",)


@keras.saving.register_keras_serializable("keras_pkm")
class MemoryBlock(keras.layers.Layer):
    """Adds a memory behind a Transformer block of any kind.

    With y = block(x), it computes

        y + memory(norm(y))

    where norm is a layer normalization, or nothing if the memory's output does
    not depend on its inputs. The values of the memory are zero at first, so
    that nothing changes until training, and are trained from the first step
    on. This layer takes the arguments of the block and returns what the block
    returns: a tensor, or a tuple whose first entry is the tensor, such as the
    outputs and the attention cache.

    Args:
        block: built `keras.layers.Layer`, such as
            `keras_hub.layers.TransformerDecoder`. It stays the same layer,
            with its weights.
        memory: optional. A `keras_pkm.layers.Memory`, of which the layer gets
            a copy with weights of its own; the config of one; or a dict of
            arguments of `keras_pkm.layers.ProductKeyMemory`, in which
            `query_normalization` defaults to `"layer"`, because batch
            statistics would reveal later tokens to a causal model. Values are
            zero at first unless a `values_initializer` is given. Defaults to
            an empty dict.
        **kwargs: further arguments of `keras.layers.Layer`. The dtype policy
            is the block's if none is given.

    Call arguments:
        *args, **kwargs: those of the block. The memory, too, uses a
            `padding_mask`, `decoder_padding_mask`, or `attention_mask` of shape
            `(batch, length)`: padding reads nothing.
        training: bool. Whether dropout and batch norms act as in training.
        return_memory_access: bool. Whether to return a tuple of what the block
            returns and the memory access `(slots, weights)`, see
            `keras_pkm.layers.Memory`. Defaults to `False`.
        token_ids: int tensor of shape `(batch, length)`, for kinds of memory
            that need them, see `keras_pkm.layers.Memory`.

    Example:

    >>> decoder = keras_hub.layers.TransformerDecoder(32, num_heads=2)
    >>> x = np.random.normal(size=(2, 5, 16))
    >>> before = decoder(x)
    >>> block = keras_pkm.layers.MemoryBlock(
    ...     decoder, memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8}
    ... )
    >>> bool(np.all(block(x) == before))
    True

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242)
    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    """

    def __init__(
        self,
        block: keras.layers.Layer,
        memory: MemoryTemplate = None,
        **kwargs: Any,
    ):
        # Keras tells masks and optional tensors apart by this signature.
        setattr(self, "call", _with_arguments_of(block, self.call))
        kwargs.setdefault("dtype", block.dtype_policy)
        super().__init__(**kwargs)
        self.block = block
        made = make_memory(
            memory,
            self.dtype_policy,
            reads_zero=True,
            query_normalization="layer",
        )
        self.normalization = None
        if made.uses_inputs:
            self.normalization = keras.layers.LayerNormalization(
                dtype=self.dtype_policy, name="normalization"
            )
        self.memory = made
        self.supports_masking = True
        self.supports_jit = backend.SUPPORTS_JIT

    def __getattr__(self, name: str) -> Any:
        # With torch, a layer is a module, which finds its sublayers so.
        of_module = getattr(super(), "__getattr__", None)
        if of_module is not None:
            with contextlib.suppress(AttributeError):
                return of_module(name)
        if name == "block" or name.startswith("_"):
            raise AttributeError(
                f"'{type(self).__name__}' has no attribute '{name}'."
            )
        # Decoding asks the blocks of some models for what they are.
        block = self.block
        value = getattr(block, name)
        if callable(value):
            raise AttributeError(
                f"`{name}` of a `{type(block).__name__}` cannot be called "
                "where a memory stands behind it, because the memory would "
                "have no part in it. Models that decode so, such as a "
                "`Qwen3_5CausalLM`, cannot generate with memories."
            )
        return value

    def build(self, inputs_shape: tuple[int | None, ...]) -> None:
        if self.normalization is not None:
            self.normalization.build(inputs_shape)
        self.memory.build(inputs_shape)
        freeze_parts(self)

    def call(
        self,
        *args: Any,
        training: bool | None = None,
        return_memory_access: bool = False,
        token_ids: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        check_activity_regularizer(self, training, return_memory_access)
        is_new = not self.block.built
        # Keras tells the block whether it is in training.
        outputs = self.block(*args, **kwargs)
        if is_new:
            freeze_parts(self.block)
        y, *others = _parts(outputs, self.block)
        if others and training:
            self._check_decoding()
        read, access = self.memory(
            y if self.normalization is None else self.normalization(y),
            mask=self._padding_mask(y, args, kwargs),
            training=training,
            return_memory_access=True,
            token_ids=token_ids,
        )
        # The block may have another dtype policy.
        y = y + ops.cast(read, y.dtype)
        outputs = (y, *others) if isinstance(outputs, tuple) else y
        return (outputs, access) if return_memory_access else outputs

    def _check_decoding(self) -> None:
        if any(
            isinstance(layer, keras.layers.BatchNormalization)
            for layer in self.memory._flatten_layers()
        ):
            raise ValueError(
                "`training` must be false where a cache is used, because the "
                "queries of the memory are normalized by batch: each token "
                "would be normalized by itself. Received: training=True. Use "
                '`memory={"query_normalization": "layer"}` to train so.'
            )

    def _padding_mask(
        self, y: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Tensor | None:
        """The mask among the block's arguments, if it is one of its outputs."""
        for mask in padding_masks(self.block, args, kwargs):
            # With a cache, a mask may cover tokens that are not in the inputs;
            # an attention mask may have a row for each of them.
            if type(self.block).__name__ in _WITH_IMAGES:
                mask = _with_images(y, mask)
            if may_be_mask_of(y, mask):
                return mask
        return None

    def compute_output_spec(
        self,
        *args: Any,
        training: bool | None = None,
        return_memory_access: bool = False,
        token_ids: keras.KerasTensor | None = None,
        **kwargs: Any,
    ) -> Any:
        outputs = self.block.compute_output_spec(*args, **kwargs)
        y, *_ = _parts(outputs, self.block)
        _, access = self.memory.compute_output_spec(
            y, return_memory_access=True, token_ids=token_ids
        )
        return (outputs, access) if return_memory_access else outputs

    def compute_output_shape(self, *args: Any, **kwargs: Any) -> Any:
        return self.block.compute_output_shape(*args, **kwargs)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "block": keras.saving.serialize_keras_object(self.block),
            "memory": memory_config(self.memory),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "MemoryBlock":
        block = keras.saving.deserialize_keras_object(config["block"])
        return cls(**{**config, "block": block})


def _with_arguments_of(
    block: keras.layers.Layer, call: Callable[..., Any]
) -> Callable[..., Any]:
    """A function that calls `call`, and has the arguments of a block, too."""

    def call_block(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    signature = inspect.signature(block.call)
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value)
        for name, value in _OWN.items()
    ]
    parameters = [
        each for each in signature.parameters.values() if each.name not in _OWN
    ]
    last = [each for each in parameters if each.kind is each.VAR_KEYWORD]
    others = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
    whole = signature.replace(parameters=[*others, *own, *last])
    setattr(call_block, "__signature__", whole)
    return call_block


def padding_masks(
    block: keras.layers.Layer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """The masks among the arguments of a block."""
    given = inspect.signature(block.call).bind(*args, **kwargs).arguments
    found = (given.get(name) for name in _PADDING_MASKS)
    return [mask for mask in found if mask is not None]


def _with_images(y: Tensor, mask: Tensor) -> Tensor:
    """A mask of text, with true for the tokens of images before it."""
    length, text_length = y.shape[1], mask.shape[1]
    if None not in (length, text_length) and text_length >= length:
        return mask
    num_images = ops.shape(y)[1] - ops.shape(mask)[1]
    mask = ops.cast(mask, "int32")
    return ops.pad(mask, ((0, 0), (num_images, 0)), constant_values=1)


def _parts(outputs: Any, block: keras.layers.Layer) -> tuple[Any, ...]:
    """What a block returns, as a tuple."""
    parts = outputs if isinstance(outputs, tuple) else (outputs,)
    first = parts[0] if parts else None
    if not (ops.is_tensor(first) or isinstance(first, keras.KerasTensor)):
        raise ValueError(
            "`block` must return a tensor, or a tuple that begins with one. "
            f"Received: '{block.name}', a `{type(block).__name__}`, which "
            f"returned {outputs!r}."
        )
    return parts
