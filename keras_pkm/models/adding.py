"""Adds memories to a language model of KerasHub."""

from collections.abc import Iterable

import keras
import keras_hub

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.layers.make_memory import template_for
from keras_pkm.layers.memories import memories
from keras_pkm.models.families import KINDS
from keras_pkm.models.families import backbone_class
from keras_pkm.models.families import task_class
from keras_pkm.models.memory_backbone import MemoryBackbone
from keras_pkm.ops.backend import backend


def add_memory(
    model: keras_hub.models.Backbone | keras_hub.models.Task,
    memory_layers: Iterable[int],
    memory: MemoryTemplate = None,
    memory_block: str = "serial",
    share_table: bool = False,
) -> keras_hub.models.Backbone | keras_hub.models.Task:
    """Adds memories to a language model of KerasHub: the paper's "+Init".

    The values of the memories are zero at first, so that the new model computes
    exactly the same as the plain one; they are trained from the first step on.
    The new class is a subclass of the plain model's class: it has the same
    methods, such as `generate`, and its presets are loaded by the same
    `from_preset`, after `import keras_pkm`. Tasks can be trained under
    `tf.distribute`, and by default use `keras_pkm.optimizers.PKMAdam`.

    Args:
        model: a `keras_hub.models.Backbone`, or a task: a
            `keras_hub.models.CausalLM`, `MaskedLM` or `TextClassifier`, or a
            `keras_pkm.models.QuestionAnswerer`; trained or not. It may be a
            model without memories that this function returned.
        memory_layers: tuple of int. The Transformer blocks that get a memory,
            counted from 1. If it is empty, the model stays plain, but its class
            trains like those with memory.
        memory: optional. A `keras_pkm.layers.Memory`, of which each block gets
            a copy with weights of its own, and with the dtype policy of the
            block; the config of one; or a dict of arguments of
            `keras_pkm.layers.ProductKeyMemory`, all of which are optional. In
            a dict, `query_normalization` defaults to `"layer"` with
            `"serial"`. A memory keeps its own normalization, by default
            `"batch"`. Causal tasks that this function returns refuse to train
            with `"batch"`, because batch statistics reveal later tokens. Values
            are zero at first unless a `values_initializer` is given or
            `memory_block` is `"pkm"`. For training from scratch,
            `keras.initializers.VarianceScaling(
            mode="fan_out", distribution="untruncated_normal")` gives the
            paper's initial values.
        memory_block: `"serial"` adds a memory behind each of the blocks.
            `"resm"` adds it beside the block's feed-forward network, and
            `"pkm"` replaces that network, as in the paper; both need blocks of
            the class `keras_hub.layers.TransformerEncoder`, such as those of
            BERT, DistilBERT, RoBERTa, XLM-RoBERTa and ELECTRA. `"ffn"` is the
            plain block without memory. Defaults to `"serial"`.
        share_table: bool. Whether all memories read one table of values, as
            in Memory+; each finds its own slots. Defaults to `False`.

    Returns:
        A `keras_pkm.models.MemoryBackbone`, or a task around one. It shares
        its layers and weights with `model`. The head of a task is a copy. A
        task is compiled as a new one is, with the default loss and metrics.

    Raises:
        ValueError: the model has no Transformer blocks, or has a memory
            already; a layer's number is out of range; a block does not
            suit `memory_block`; or this is called in the scope of a
            `tf.distribute` strategy in which the model was not created.

    Example:

    >>> plain = keras_hub.models.LlamaBackbone(
    ...     vocabulary_size=100,
    ...     num_layers=3,
    ...     num_query_heads=2,
    ...     hidden_dim=16,
    ...     intermediate_dim=32,
    ...     num_key_value_heads=2,
    ... )
    >>> model = keras_pkm.models.add_memory(
    ...     keras_hub.models.LlamaCausalLM(plain),
    ...     memory_layers=(1, 3),
    ...     memory={"num_sub_keys": 8, "top_k": 4, "key_dim": 8},
    ... )
    >>> isinstance(model, keras_hub.models.LlamaCausalLM)
    True
    >>> sorted(model.backbone.memory_outputs)
    [1, 3]

    References:

    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242)
    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    - [Berges et al., 2024](https://arxiv.org/abs/2412.09764), Memory+
    """
    if isinstance(model, KINDS):
        tokenizer = getattr(model.preprocessor, "tokenizer", None)
        memory = template_for(memory, tokenizer)
        backbone = add_memory(
            model.backbone, memory_layers, memory, memory_block, share_table
        )
        return _around(backbone, model)
    if not isinstance(model, keras_hub.models.Backbone):
        kinds = ", ".join(f"`{kind.__name__}`" for kind in KINDS)
        raise ValueError(
            f"`model` must be a `Backbone` of KerasHub, or one of {kinds}. "
            f"Received: a `{type(model).__name__}`."
        )
    if isinstance(model, MemoryBackbone) and not memories(model):
        model = model.plain_backbone
    # The new weights belong to the strategy of the others.
    with backend.strategy_of(model).scope():
        return backbone_class(type(model))(
            model,
            memory_layers,
            memory,
            memory_block,
            share_table,
        )


def _around(
    backbone: keras_hub.models.Backbone, plain: keras_hub.models.Task
) -> keras_hub.models.Task:
    """A task like a plain one, with its head, around another backbone."""
    with backend.strategy_of(plain).scope():
        task = task_class(type(plain)).from_config(
            {
                **plain.get_config(),
                "backbone": backbone,
                "preprocessor": plain.preprocessor,
            }
        )
    new_head, old_head = _head(task), _head(plain)
    shapes = [[each.shape for each in head] for head in (new_head, old_head)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            "`model` must have a head that is neither quantized nor has LoRA. "
            f"Received: a `{type(plain).__name__}` whose head has other "
            "weights than a new one. Add memories first."
        )
    for new, old in zip(new_head, old_head):
        new.assign(old)
    # `compile` chose how it generates.
    if hasattr(plain, "sampler"):
        task.sampler = plain.sampler
    return task


def _head(task: keras_hub.models.Task) -> list[keras.Variable]:
    of_backbone = {id(weight) for weight in task.backbone.weights}
    return [each for each in task.weights if id(each) not in of_backbone]
