"""Imports, fits, generates, teaches, patches and reverts, without TensorFlow.

A program of its own, in which importing TensorFlow raises an error.
"""

import sys
import tempfile

sys.modules["tensorflow"] = None
sys.modules["tensorflow_text"] = None

import keras  # noqa: E402
import keras_hub  # noqa: E402
import numpy as np  # noqa: E402

import keras_pkm  # noqa: E402

WORDS = [*"abcdefgh", *(f"Ġ{letter}" for letter in "abcdefgh"), "<|endoftext|>"]
MERGES = [f"Ġ {letter}" for letter in "abcdefgh"]
TEXTS = ["a b c d e", "b c d e f", "c d e f g", "d e f g h"]


def make_model():
    keras.utils.set_random_seed(0)
    ids = {word: number for number, word in enumerate(["Ġ", *WORDS])}
    tokenizer = keras_hub.models.GPT2Tokenizer(ids, MERGES)
    plain = keras_hub.models.GPT2CausalLM(
        keras_hub.models.GPT2Backbone(
            len(ids), 2, 2, 16, 32, max_sequence_length=12, dropout=0.0
        ),
        keras_hub.models.GPT2CausalLMPreprocessor(tokenizer, sequence_length=8),
    )
    memory = {"num_sub_keys": 16, "num_heads": 2, "top_k": 4, "key_dim": 8}
    return keras_pkm.models.add_memory(plain, (1, 2), memory)


def main():
    model = make_model()
    model.compile(
        keras_pkm.optimizers.PKMAdam(1e-2, memory_learning_rate=0.1),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        sampler="greedy",
    )
    model.fit(TEXTS, epochs=60, batch_size=4, shuffle=False, verbose=0)
    said = model.generate("a b", max_length=8)
    assert said == "a b c d e", said

    before = model.get_weights()
    teacher = keras_pkm.teaching.MemoryTeacher(model, learning_rate=0.05)
    teacher.teach(["a b h h h"], steps=40)
    said = model.generate("a b", max_length=8)
    assert said.startswith("a b h h h"), said
    with tempfile.TemporaryDirectory() as folder:
        teacher.make_patch().save(f"{folder}/patch.safetensors")
        patch = keras_pkm.teaching.MemoryPatch.load(
            f"{folder}/patch.safetensors"
        )
        model.save_to_preset(f"{folder}/preset")
        copy = keras_hub.models.CausalLM.from_preset(f"{folder}/preset")
    patch.revert(copy)
    for old, new in zip(before, copy.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)
    usage = keras_pkm.models.MemoryProbe(copy).measure(TEXTS)
    assert sorted(usage) == [1, 2]
    loaded = [name for name in sys.modules if name.startswith("tensorflow.")]
    assert not loaded, loaded
    print(f"{keras.backend.backend()}: {said!r}")


if __name__ == "__main__":
    main()
