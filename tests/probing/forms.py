"""Data in the forms that users have it, and tasks that take texts."""

import keras
import keras_hub
import tensorflow as tf

import keras_pkm
from tests.any_backbone.tiny_families import MEMORY
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_masked_lm

TEXTS = ["a b c", "d", "e f g a", "b b"] * 10
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c d e f g".split()


class Batches(keras.utils.PyDataset):
    """A `PyDataset` of given batches; endless ones begin again."""

    def __init__(self, batches, is_endless=False, **kwargs):
        super().__init__(**kwargs)
        self.batches = batches
        self.is_endless = is_endless
        self.passes = 0

    @property
    def num_batches(self):
        return None if self.is_endless else len(self.batches)

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]

    def on_epoch_end(self):
        self.passes += 1


def dataset(arrays, size=16):
    return tf.data.Dataset.from_tensor_slices(arrays).batch(size)


def classifier():
    tokenizer = keras_hub.models.BertTokenizer(WORDS)
    return keras_pkm.models.MemoryBertTextClassifier(
        tiny_backbone(**ONE_LAYER),
        2,
        preprocessor=keras_hub.models.BertTextClassifierPreprocessor(
            tokenizer, sequence_length=12
        ),
    )


def masked_lm():
    tokenizer = keras_hub.models.BertTokenizer(WORDS)
    task = tiny_masked_lm(**ONE_LAYER)
    task.preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
        tokenizer, sequence_length=12, mask_selection_length=4
    )
    return task


def causal_lm():
    """A GPT-2 with byte pairs, to which a memory is added."""
    vocabulary = [*"abcdefgĠ", "Ġa", "<|endoftext|>"]
    tokenizer = keras_hub.models.GPT2Tokenizer(
        {token: number for number, token in enumerate(vocabulary)}, ["Ġ a"]
    )
    plain = keras_hub.models.GPT2CausalLM(
        keras_hub.models.GPT2Backbone(50, 2, 2, 16, 32, max_sequence_length=12),
        keras_hub.models.GPT2CausalLMPreprocessor(
            tokenizer, sequence_length=12
        ),
    )
    return keras_pkm.models.add_memory(plain, (1, 2), MEMORY)
