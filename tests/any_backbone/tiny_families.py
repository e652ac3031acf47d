"""Tiny backbones of KerasHub's families, random and plain."""

import keras
import keras_hub
import numpy as np

import keras_pkm

VOCABULARY_SIZE, LENGTH = 50, 8
MEMORY = {"num_sub_keys": 8, "num_heads": 2, "top_k": 4, "key_dim": 8}
#: With values other than zero from the start, which each memory draws anew: a
#: preset would otherwise draw again what it should have loaded.
FILLED = {
    **MEMORY,
    "values_initializer": {
        "class_name": "RandomNormal",
        "config": {"mean": 0.0, "stddev": 0.25, "seed": None},
    },
}
_hub = keras_hub.models
# Layers, heads, width, and width of the feed-forward network.
_SIZES = (2, 2, 16, 32)
_LONGEST = {"dropout": 0.0, "max_sequence_length": 12}

CAUSAL = {
    "Bloom": lambda: _hub.BloomBackbone(50, *_SIZES, **_LONGEST),
    "Falcon": lambda: _hub.FalconBackbone(50, *_SIZES),
    "GPT2": lambda: _hub.GPT2Backbone(50, *_SIZES, **_LONGEST),
    "GPTNeoX": lambda: _hub.GPTNeoXBackbone(50, *_SIZES, **_LONGEST),
    "Gemma": lambda: _hub.GemmaBackbone(50, 2, 2, 1, 16, 32, 8),
    "Llama": lambda: _hub.LlamaBackbone(50, *_SIZES, 2),
    "Llama3": lambda: _hub.Llama3Backbone(50, *_SIZES, 2),
    "Mistral": lambda: _hub.MistralBackbone(50, *_SIZES, 2, sliding_window=8),
    "OPT": lambda: _hub.OPTBackbone(50, *_SIZES, **_LONGEST),
    "Phi3": lambda: _hub.Phi3Backbone(50, 2, 16, 32, 2, 2),
    "Qwen": lambda: _hub.QwenBackbone(50, 2, 2, 2, 16, 32),
    "Qwen3": lambda: _hub.Qwen3Backbone(50, 2, 2, 2, 8, 16, 32),
}
_MOE = (50, 2, 2, 2, 16, 32, 32)
_LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
OTHERS = {
    "Bert": lambda: _hub.BertBackbone(50, *_SIZES, **_LONGEST),
    "DistilBert": lambda: _hub.DistilBertBackbone(50, *_SIZES, **_LONGEST),
    "ESM": lambda: _hub.ESMBackbone(50, *_SIZES, **_LONGEST),
    "Gemma4": lambda: _hub.Gemma4Backbone(50, 16, 2, 2, 1, 16, 32, 8),
    "GptOss": lambda: _hub.GptOssBackbone(50, *_SIZES, 2, 2),
    "Mixtral": lambda: _hub.MixtralBackbone(50, *_SIZES, 2, 2),
    "PaliGemma": lambda: _hub.PaliGemmaBackbone(
        50, 16, 2, 2, 1, 16, 32, 8, 8, 2, 16, 2
    ),
    "Qwen3Moe": lambda: _hub.Qwen3MoeBackbone(*_MOE, 2, top_k=1),
    "Qwen3_5": lambda: _hub.Qwen3_5Backbone(50, 2, 2, 2, 8, 16, 32, **_LINEAR),
    "Qwen3_5Moe": lambda: _hub.Qwen3_5MoeBackbone(
        50, 2, 2, 2, 8, 16, 32, 32, 2, 1, **_LINEAR
    ),
    "QwenMoe": lambda: _hub.QwenMoeBackbone(*_MOE, 32, 2, top_k=1),
    "RoformerV2": lambda: _hub.RoformerV2Backbone(50, *_SIZES, 8, dropout=0.0),
    "SmolLM3": lambda: _hub.SmolLM3Backbone(
        vocabulary_size=50,
        hidden_dim=16,
        intermediate_dim=32,
        num_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        attention_bias=False,
        attention_dropout=0.0,
        rope_layer_enabled_list=[True, True],
        layer_types=["full_attention", "full_attention"],
        mlp_bias=False,
        layer_norm_epsilon=1e-6,
        max_position_embeddings=12,
        rope_theta=1e4,
        partial_rotary_factor=1.0,
    ),
    "DebertaV3": lambda: _hub.DebertaV3Backbone(
        50, *_SIZES, **_LONGEST, bucket_size=4
    ),
    "Electra": lambda: _hub.ElectraBackbone(50, 2, 2, 16, 16, 32, **_LONGEST),
    "FNet": lambda: _hub.FNetBackbone(50, 2, 16, 32, **_LONGEST),
    # Its decoder takes tensors that are not there without images.
    "Gemma3": lambda: _hub.Gemma3Backbone(
        vocabulary_size=50,
        image_size=16,
        num_layers=2,
        num_query_heads=2,
        num_key_value_heads=1,
        hidden_dim=16,
        intermediate_dim=32,
        head_dim=8,
    ),
    "Roberta": lambda: _hub.RobertaBackbone(50, *_SIZES, **_LONGEST),
    "XLMRoberta": lambda: _hub.XLMRobertaBackbone(50, *_SIZES, **_LONGEST),
}
ALL = {**CAUSAL, **OTHERS}


def make_plain(family):
    """A plain backbone, the same at each call."""
    keras.utils.set_random_seed(1)
    return ALL[family]()


def make_causal_lm(family, memory=FILLED):
    """A causal language model whose second block has a memory."""
    plain = make_plain(family)
    task = getattr(_hub, f"{family}CausalLM")(backbone=plain, preprocessor=None)
    keras.utils.set_random_seed(2)
    return keras_pkm.models.add_memory(task, (2,), memory)


def inputs_of(backbone):
    """Two rows of tokens, the second of which ends in padding."""
    rng = np.random.default_rng(3)
    values = {
        "token_ids": rng.integers(1, VOCABULARY_SIZE, (2, LENGTH)),
        "padding_mask": np.arange(LENGTH) < np.array([[LENGTH], [LENGTH - 3]]),
        "segment_ids": np.zeros((2, LENGTH)),
        "position_ids": np.arange(LENGTH) + np.zeros((2, 1)),
        # Of PaliGemma.
        "response_mask": np.zeros((2, LENGTH)),
    }
    inputs = {
        name: values[name].astype("int32")
        for name in backbone.input
        if name != "images"
    }
    if "images" in backbone.input:
        inputs["images"] = rng.normal(size=(2, 16, 16, 3)).astype("float32")
    return inputs


def outputs_of(model, inputs):
    """What a model returns, as arrays."""
    outputs = keras.tree.flatten(model(inputs))
    return [keras.ops.convert_to_numpy(each) for each in outputs]


def fit(causal_lm, steps=3):
    """Trains a causal language model on a batch; returns the losses."""
    data = inputs_of(causal_lm.backbone)
    labels = np.roll(data["token_ids"], -1, axis=1)
    # Keras' own `fit`: without TensorFlow that of KerasHub's tasks needs grain.
    found = keras.Model.fit(
        causal_lm, data, labels, epochs=steps, shuffle=False, verbose=0
    )
    return found.history["loss"]
