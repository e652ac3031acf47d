"""KerasHub's and Keras' own contract tests, run on our public classes.

Their wheels ship these tests. Where KerasHub's own class of the same kind fails
one, too, the test says so, and fails once KerasHub's class passes.
"""

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf
from keras.src.testing import test_case as keras_test_case
from keras_hub.src.tests import test_case as hub_test_case

from keras_pkm import layers
from keras_pkm import models
from tests.conformance.preprocessors_test import Letters

keras_tests = keras_test_case.TestCase()
hub_tests = hub_test_case.TestCase()

pytestmark = [
    pytest.mark.slow,
    # They pass data sets and the default `shuffle=True` to `fit`.
    pytest.mark.filterwarnings("ignore:`shuffle=True` was passed"),
    # KerasHub's tests lag behind Keras.
    pytest.mark.filterwarnings("ignore:The `check_types` argument"),
    # Poolers get no gradient from losses over tokens.
    pytest.mark.filterwarnings("ignore:Gradients do not exist for variables"),
]

MEMORY = {"num_sub_keys": 4, "num_heads": 2, "top_k": 2, "key_dim": 4}
SIZES = {
    "vocabulary_size": 20,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 4,
    "intermediate_dim": 8,
    "max_sequence_length": 8,
}
FAMILIES = ("Bert", "DistilBert", "Roberta")


def block():
    return keras_hub.layers.TransformerEncoder(8, 2, name="block")


LAYERS = {
    "ProductKeyMemory": (layers.ProductKeyMemory, MEMORY),
    "ProductKeyMemory, layer norm": (
        layers.ProductKeyMemory,
        {**MEMORY, "query_normalization": "layer", "query_dropout": 0.1},
    ),
    "ProductKeyMemory, projection": (
        layers.ProductKeyMemory,
        {**MEMORY, "query_normalization": None, "value_dim": 6},
    ),
    "MaskedBatchNormalization": (layers.MaskedBatchNormalization, {}),
    "MemoryBlock": (
        layers.MemoryBlock,
        lambda: {"block": block(), "memory": MEMORY},
    ),
    **{
        f"PKMTransformerEncoder, {kind}": (
            layers.PKMTransformerEncoder,
            {
                "intermediate_dim": 8,
                "num_heads": 2,
                "block": kind,
                "memory": memory,
            },
        )
        for kind, memory in (("ffn", None), ("pkm", MEMORY), ("resm", MEMORY))
    },
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    """Config, build, masks, eager and symbolic calls, training, float16."""
    cls, arguments = LAYERS[name]
    keras_tests.run_layer_test(
        cls,
        arguments() if callable(arguments) else arguments,
        input_shape=(2, 5, 8),
        expected_output_shape=(2, 5, 8),
        supports_masking=True,
    )


def plain(family):
    """A backbone of KerasHub without memory."""
    if family == "Electra":
        sizes = {**SIZES, "vocab_size": 20, "embedding_dim": 4}
        sizes.pop("vocabulary_size")
        return keras_hub.models.ElectraBackbone(**sizes)
    return getattr(keras_hub.models, f"{family}Backbone")(**SIZES)


def any_class(family):
    """The class of a family's backbones with memories."""
    return type(models.add_memory(plain(family), (1,), MEMORY))


def added(family, memory_block="serial"):
    return any_class(family), {
        "backbone": plain(family),
        "memory_layers": (1,),
        "memory": MEMORY,
        "memory_block": memory_block,
    }


BACKBONES = {
    **{
        f"Memory{family}Backbone": lambda family=family: added(family, "resm")
        for family in FAMILIES
    },
    "MemoryBertBackbone, pkm": lambda: added("Bert", "pkm"),
    "MemoryBertBackbone, ffn": lambda: added("Bert", "ffn"),
    "MemoryBackbone": lambda: added("GPT2"),
    "MemoryBackbone, serial": lambda: added("Electra"),
    "MemoryBackbone, resm": lambda: added("Electra", "resm"),
}


def inputs_of(backbone):
    ones = np.ones((2, 5), "int32")
    return {
        name: 0 * ones if name == "segment_ids" else ones
        for name in backbone.input
    }


def shapes_of(backbone):
    return keras.tree.map_structure(
        lambda output: (2, *(size or 5 for size in output.shape[1:])),
        backbone.output,
    )


@pytest.mark.parametrize("name", BACKBONES)
def test_backbones(name):
    """Config, calls, `predict`, other lengths, quantized to int8 and float8."""
    cls, arguments = BACKBONES[name]()
    backbone = cls(**arguments)
    hub_tests.run_backbone_test(
        cls,
        dict(arguments),
        inputs_of(backbone),
        shapes_of(backbone),
        run_mixed_precision_check=False,
    )


def run_precision_test(name):
    cls, arguments = BACKBONES[name]()
    backbone = cls(**arguments)
    hub_tests.run_precision_test(cls, dict(arguments), inputs_of(backbone))


def test_every_part_of_a_memory_is_float32_in_mixed_precision():
    """By design: scores and values need it. KerasHub wants one policy."""
    hub_tests.run_precision_test(
        keras_hub.models.BertBackbone, dict(SIZES), inputs_of(plain("Bert"))
    )
    with pytest.raises(AssertionError, match="float16"):
        run_precision_test("MemoryBertBackbone")
    # As in KerasHub's class where no memory is.
    run_precision_test("MemoryBertBackbone, ffn")


@pytest.mark.parametrize("family", ["DistilBert", "Roberta"])
def test_precision_where_their_own_class_fails(family):
    """They ask a model with several inputs and one output for its shapes."""
    for cls, arguments in (
        (getattr(keras_hub.models, f"{family}Backbone"), SIZES),
        added(family, "ffn"),
    ):
        with pytest.raises(TypeError, match="'NoneType' object is not iter"):
            hub_tests.run_precision_test(
                cls, dict(arguments), inputs_of(plain(family))
            )


@pytest.mark.parametrize("has_memory", [False, True])
def test_masked_lm_heads_fail_eagerly_in_half_precision(has_memory):
    """Theirs, which ours have, adds a float32 bias; graphs are right."""
    backbone = keras_hub.models.BertBackbone(**SIZES, dtype="mixed_bfloat16")
    task = keras_hub.models.BertMaskedLM(backbone)
    if has_memory:
        task = models.add_memory(task, (1,), MEMORY, "resm")
    inputs = inputs_of(backbone)
    inputs["mask_positions"] = np.zeros((2, 2), "int32")
    with pytest.raises(tf.errors.InvalidArgumentError, match="AddV2"):
        task(inputs)
    assert np.isfinite(task.predict(inputs, verbose=0)).all()


TEXTS = ["at a to i", "at a to i"]


def make_preprocessor(family, kind, **options):
    name = f"{family}{kind}Preprocessor"
    module = models if kind == "QuestionAnswerer" else keras_hub.models
    return getattr(module, name)(
        Letters(vocabulary_size=20), sequence_length=8, **options
    )


def masked_lm():
    preprocessor = make_preprocessor(
        "Bert",
        "MaskedLM",
        # Every token, so that two calls mask the same.
        mask_selection_rate=1.0,
        mask_token_rate=1.0,
        random_token_rate=0.0,
        mask_selection_length=8,
    )
    return {"preprocessor": preprocessor}, (TEXTS,)


def text_classifier():
    preprocessor = make_preprocessor("Bert", "TextClassifier")
    return (
        {"preprocessor": preprocessor, "num_classes": 2},
        (tf.constant(TEXTS), [1, 0]),
    )


def question_answerer():
    texts = {"question": TEXTS, "context": TEXTS}
    labels = {"start": [1, 2], "end": [2, 2]}
    preprocessor = make_preprocessor("Bert", "QuestionAnswerer")
    return {"preprocessor": preprocessor}, (texts, labels)


# The tasks of a kind have one base class, and differ in attributes of the class
# alone.
@pytest.mark.parametrize(
    "kind, make",
    [
        ("MaskedLM", masked_lm),
        ("TextClassifier", text_classifier),
        ("QuestionAnswerer", question_answerer),
    ],
)
def test_tasks(kind, make):
    """`predict` and `fit` with a preprocessor, inside and before the model."""
    arguments, data = make()
    backbone = models.add_memory(plain("Bert"), (1,), MEMORY, "resm")
    cls = getattr(models, f"MemoryBert{kind}")
    hub_tests.run_task_test(cls, {**arguments, "backbone": backbone}, data)


def test_causal_task_with_added_memory():
    preprocessor = make_preprocessor("GPT2", "CausalLM")
    task = keras_hub.models.GPT2CausalLM(plain("GPT2"), preprocessor)
    task = models.add_memory(task, (1,), MEMORY)
    hub_tests.run_task_test(
        type(task),
        {"preprocessor": preprocessor, "backbone": task.backbone},
        (TEXTS,),
        expected_output_shape=(2, 8, 20),
    )


@pytest.mark.parametrize("name", ["MemoryBertBackbone", "MemoryBackbone"])
def test_quantization(name):
    """Of Dense, EinsumDense and Embedding; tables of values stay as they are.

    `run_backbone_test` runs it, too, as KerasHub has it today.
    """
    cls, arguments = BACKBONES[name]()
    backbone = cls(**arguments)
    hub_tests.run_quantization_test(
        backbone, cls, dict(arguments), inputs_of(backbone)
    )


def test_every_public_layer_and_model_is_here():
    # A base, and layers of two inputs, which Keras' test does not know.
    others = {"Memory", "ValueTable", "NGramMemory", "FactMemory"}
    here = {cls.__name__ for cls, _ in LAYERS.values()} | others
    assert here == set(layers.__all__)
    public = {
        name
        for name in models.__all__
        if isinstance(getattr(models, name), type)
        and issubclass(getattr(models, name), keras.Model)
    }
    # Those of families, which are made, and the plain question answerers.
    assert public == {
        "MemoryBackbone",
        "QuestionAnswerer",
        *(f"{family}QuestionAnswerer" for family in FAMILIES),
    }
