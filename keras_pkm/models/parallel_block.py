"""A memory inside one of KerasHub's encoder layers, as in the paper."""

import keras
import keras_hub

from keras_pkm.layers.make_memory import MemoryTemplate
from keras_pkm.layers.make_memory import make_memory
from keras_pkm.layers.pkm_transformer_encoder import PKMTransformerEncoder
from keras_pkm.layers.value_table import ValueTable


def make_parallel_block(
    encoder: keras.layers.Layer,
    memory_block: str,
    memory: MemoryTemplate,
    name: str,
    table: ValueTable | None = None,
) -> PKMTransformerEncoder:
    """Returns an encoder layer with a memory beside its FFN, or instead of it.

    It shares the sublayers of a plain encoder layer, and therefore its weights.

    Args:
        encoder: built `keras_hub.layers.TransformerEncoder`.
        memory_block: `"resm"` or `"pkm"`.
        memory: A memory, its config, or arguments of `ProductKeyMemory`.
        name: The name of the new layer.
        table: The table, if several memories share one.

    Raises:
        ValueError: the layer is of another class.
    """
    # A subclass may compute something else.
    if type(encoder) is not keras_hub.layers.TransformerEncoder:
        raise ValueError(
            f'`memory_block="{memory_block}"` needs blocks of the class '
            "`keras_hub.layers.TransformerEncoder`, such as those of BERT, "
            f"ELECTRA and XLM-RoBERTa. Received: '{encoder.name}', a "
            f'`{type(encoder).__name__}`. Use `memory_block="serial"`.'
        )
    if memory_block == "resm":
        memory = make_memory(memory, encoder.dtype_policy, reads_zero=True)
    # The sublayers are trainable or frozen by themselves.
    config = {**encoder.get_config(), "name": name, "trainable": True}
    block = PKMTransformerEncoder(
        **{**config, "block": memory_block, "memory": memory}
    )
    if table is not None and block.memory is not None:
        block.memory.share_table(table)
    block.share_sublayers(encoder)
    width = encoder._self_attention_layer_norm.gamma.shape[-1]
    block.build((None, None, width))
    return block
