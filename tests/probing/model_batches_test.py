"""What `fit` takes is taken wherever data goes into a model with memory."""

import functools
import itertools

import grain
import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.layers import ProductKeyMemory
from keras_pkm.models import MemoryProbe
from keras_pkm.probing import model_batches
from keras_pkm.probing.model_batches import ModelBatches
from keras_pkm.teaching import SlotImportance
from tests.contracts import fresh_rng
from tests.models.tiny import ONE_LAYER
from tests.models.tiny import masked_batch
from tests.models.tiny import tiny_backbone
from tests.models.tiny import tiny_masked_lm
from tests.probing.forms import TEXTS
from tests.probing.forms import WORDS
from tests.probing.forms import Batches
from tests.probing.forms import causal_lm
from tests.probing.forms import classifier
from tests.probing.forms import dataset
from tests.probing.forms import masked_lm
from tests.teaching.models import make_model


class Again:
    """Batches that can be iterated over again, of no type that we know."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


ROWS = 40


def arrays():
    rng = fresh_rng()
    x = rng.normal(size=(ROWS, 2, 12)).astype("float32")
    # Labels that would pass for inputs.
    y = rng.normal(size=(ROWS, 2, 12)).astype("float32")
    return x, y, rng.random(ROWS).astype("float32")


def cut(arrays, size=16):
    """Batches of arrays, the last one smaller."""
    return [
        tuple(each[first : first + size] for each in arrays)
        for first in range(0, len(arrays[0]), size)
    ]


ONE_INPUT = {
    "an array": lambda x, y, w: x,
    "a tensor": lambda x, y, w: tf.constant(x),
    "a tuple of one": lambda x, y, w: (x,),
    "a tuple of two": lambda x, y, w: (x, y),
    "a tuple of three": lambda x, y, w: (x, y, w),
    "tensors": lambda x, y, w: (tf.constant(x), tf.constant(y)),
    "float64": lambda x, y, w: (x.astype("float64"), y),
    "a list of one": lambda x, y, w: [x],
    "a list of tuples": lambda x, y, w: cut((x, y, w)),
    "a list of lists": lambda x, y, w: [list(each) for each in cut((x, y))],
    "a list of arrays": lambda x, y, w: [b for (b,) in cut((x,), 10)],
    "a dataset": lambda x, y, w: dataset(x),
    "a dataset of one": lambda x, y, w: dataset((x,)),
    "a dataset of pairs": lambda x, y, w: dataset((x, y)),
    "a dataset of unknown length": lambda x, y, w: dataset((x, y)).filter(
        lambda *_: True
    ),
    "a generator": lambda x, y, w: (each for each in cut((x, y, w))),
    "a generator of x": lambda x, y, w: (each for (each,) in cut((x,))),
    "an iterator": lambda x, y, w: iter(cut((x, y))),
    "another iterable": lambda x, y, w: Again(cut((x, y))),
    "a PyDataset": lambda x, y, w: Batches(cut((x, y))),
    "a PyDataset with workers": lambda x, y, w: Batches(cut((x, y)), workers=2),
    "grain": lambda x, y, w: grain.MapDataset.source(
        [(a, b) for a, b in zip(x, y)]
    ).batch(16),
}


@functools.cache
def probe_of(model):
    """Traced once for each model."""
    return MemoryProbe(model)


def reads(model, data, **options):
    return probe_of(model).measure(data, **options)[1]["top1_reads"]


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def task():
    return classifier()


@pytest.mark.parametrize("form", ONE_INPUT)
def test_forms_of_one_input(model, form):
    x, y, weights = arrays()
    expected = probe_of(model).measure([(x,)])
    assert expected[1]["top1_reads"] == ROWS * 2 * 2
    usage = probe_of(model).measure(ONE_INPUT[form](x, y, weights))
    for number, figures in expected.items():
        assert usage[number] == pytest.approx(figures)


def test_several_inputs():
    a, b = keras.Input((3, 8), name="a"), keras.Input((3, 8), name="b")
    memory = ProductKeyMemory(8, 1, 2, 4)
    model = keras.Model([a, b], memory(a) + b)
    x, y, _ = np.random.default_rng(0).normal(size=(3, ROWS, 3, 8))
    for data in (
        [x, y],
        ((x, y),),
        ((x, y), x),
        ([x, y], x),
        {"a": x, "b": y},
        ({"a": x, "b": y}, x, np.ones(ROWS)),
        dataset((((x, y)),)),
        dataset(((x, y), x)),
        dataset({"a": x, "b": y}),
        [((x, y), x)],
        [([x, y],)],
        Batches([((x, y), x)]),
    ):
        assert reads(model, data) == ROWS * 3
    for data in ((x, y), dataset((x, y)), [(x, y)], [x, y, x], [x, y, x, y]):
        with pytest.raises(ValueError, match="`data` must be.*with 2"):
            reads(model, data)


@pytest.mark.slow
def test_models_of_all_kinds():
    """A `Sequential`, a functional model of a dict, a subclass."""
    x, y, _ = arrays()
    inputs = {"x": keras.Input((2, 12), name="x")}
    memory = ProductKeyMemory(8, 1, 2, 4)
    for model in (
        keras.Sequential([keras.Input((2, 12)), memory]),
        keras.Sequential([memory]),
        Subclass(),
    ):
        model(x)
        for data in (x, (x, y), [(x, y)], dataset((x, y)), iter([(x, y)])):
            assert reads(model, data) == ROWS * 2
    model = keras.Model(inputs, memory(inputs["x"]))
    for data in ({"x": x}, ({"x": x}, y), dataset(({"x": x}, y))):
        assert reads(model, data) == ROWS * 2


def test_a_list_that_may_be_two_things_is_refused(model):
    x, y, weights = arrays()
    subclass = Subclass()
    subclass(x)
    assert reads(subclass, (x, y)) == reads(subclass, [x]) == ROWS * 2
    for kind, data in (
        (model, [x, y]),
        (model, [x, y, weights]),
        (subclass, [x, y]),
        (subclass, [x, x, x, x]),
    ):
        with pytest.raises(
            ValueError, match=r"a list of \d arrays.*as a tuple"
        ):
            reads(kind, data)


class Subclass(keras.Model):
    def __init__(self):
        super().__init__()
        self.memory = ProductKeyMemory(8, 1, 2, 4)

    def call(self, x, training=False):
        return self.memory(x, training=training)


def test_batch_size_and_steps(model):
    x, y, _ = arrays()
    probe = probe_of(model)
    for options, expected in (
        ({}, [32, 8]),
        ({"batch_size": 15}, [15, 15, 10]),
        ({"batch_size": 15, "steps": 2}, [15, 15]),
        ({"steps": 4}, [10] * 4),
    ):
        found = probe.count_each((x, y), **options)
        sizes = [each[1]["top1"].sum() // 4 for each in found]
        assert sizes == expected
    assert reads(model, dataset((x, y)), steps=2) == 32 * 4
    for options in ({"batch_size": 0}, {"steps": 0}, {"steps": 1.5}):
        with pytest.raises(ValueError, match="must be a positive integer"):
            probe.measure(x, **options)
    for data in (dataset(x), [(x, y)], iter([x]), Batches([(x, y)])):
        with pytest.raises(ValueError, match="`batch_size` must be `None`"):
            probe.measure(data, batch_size=8)


def test_endless_data_ends_or_is_refused(model, monkeypatch):
    x, y, _ = arrays()
    pairs = dataset((x, y))
    for data in (
        pairs.repeat(),
        pairs.repeat().map(lambda x, y: (x, y)).prefetch(1),
        Batches(cut((x, y)), is_endless=True),
        Batches(cut((x, y)), is_endless=True, workers=2),
    ):
        with pytest.raises(ValueError, match="`data` must have an end.*take"):
            reads(model, data)
        assert reads(model, data, steps=2) == 2 * 16 * 4
    # These do not say that they have no end.
    monkeypatch.setattr(model_batches, "MOST_BATCHES", 5)
    for make in (
        lambda: itertools.repeat((x, y)),
        lambda: pairs.repeat().filter(lambda *_: True),
        lambda: Again(itertools.repeat((x, y))),
    ):
        with pytest.raises(ValueError, match="must end within 5 batches"):
            reads(model, make())
        assert reads(model, make(), steps=7)
    assert reads(model, (each for each in [(x, y)] * 5)) == 5 * ROWS * 4
    assert reads(model, [(x, y)] * 6) == 6 * ROWS * 4


def test_data_that_ends_too_early_is_refused(model):
    x, y, _ = arrays()
    for data in (
        dataset((x, y)),
        cut((x, y)),
        iter(cut((x, y))),
        Batches(cut((x, y))),
    ):
        with pytest.raises(ValueError, match="steps=4, and data .* after 3"):
            reads(model, data, steps=4)


def test_empty_data_is_refused(model):
    x, y, _ = arrays()
    used = iter([(x, y)])
    reads(model, used)
    for data in (
        [],
        x[:0],
        (x[:0], y[:0]),
        dataset(x[:0]),
        Again([]),
        Batches([]),
        used,
        {},
        None,
        (None,),
        (),
    ):
        nothing = "at least one batch|no inputs|tuple of length 0"
        with pytest.raises(ValueError, match=nothing):
            reads(model, data)


def test_what_is_not_batched_is_refused(model):
    x, y, _ = arrays()
    for data in (
        tf.data.Dataset.from_tensor_slices((x, y)),
        tf.data.Dataset.from_tensor_slices({"x": x}),
        list(x),
        [(x[0], y[0])],
        [{"x": x[0]}],
        (x[0], y[0]),
        (each for each in x),
    ):
        with pytest.raises(ValueError, match=r"`data` must be.*a single exam"):
            reads(model, data)


def test_other_things_are_refused(model):
    x, y, weights = arrays()
    for data in (
        (x, y, weights, weights),
        [(x, y, weights, weights)],
        "text",
        ["text"],
        (["text"], [1]),
        [1.0, 2.0],
        [x, "text"],
        5,
        object(),
        (x, object()),
        np.array([None]),
        (x, ["a"] * ROWS),
    ):
        with pytest.raises(ValueError, match="`data` must be arrays"):
            reads(model, data)
    with pytest.raises(ValueError, match="same number of samples"):
        reads(model, (x, y[:-1]))


def test_a_py_dataset_is_told_that_a_pass_has_ended(model):
    x, y, _ = arrays()
    data = Batches(cut((x, y)))
    reads(model, data)
    reads(model, data, steps=1)
    assert data.passes == 2


def tokens_of(features):
    return int(np.sum(features["padding_mask"]))


LABELS = [0, 1] * 20
TEXT_FORMS = {
    "a list": lambda x: x,
    "a tuple": lambda x: tuple(x) and (x,),
    "an array": lambda x: np.array(x),
    "objects": lambda x: np.array(x, object),
    "bytes": lambda x: [text.encode() for text in x],
    "a tensor": lambda x: tf.constant(x),
    "labels": lambda x: (x, LABELS),
    "weights": lambda x: (np.array(x), np.array(LABELS), np.ones(ROWS)),
    "a dataset": lambda x: dataset(x),
    "a dataset with labels": lambda x: dataset((x, LABELS)),
    "batches": lambda x: [x[:8], x[8:]],
    "batches with labels": lambda x: [
        (x[:8], LABELS[:8]),
        (np.array(x[8:]), LABELS[8:]),
    ],
    "a generator": lambda x: (each for each in (x[:8], x[8:])),
    "a PyDataset": lambda x: Batches([(x, LABELS)]),
    "grain": lambda x: grain.MapDataset.source(x).batch(8),
}


@pytest.mark.parametrize("form", TEXT_FORMS)
def test_texts(task, form):
    expected = probe_of(task).measure(dict(task.preprocessor(TEXTS)))
    assert expected[1]["top1_reads"] == 2 * tokens_of(task.preprocessor(TEXTS))
    usage = probe_of(task).measure(TEXT_FORMS[form](TEXTS))
    assert usage[1] == pytest.approx(expected[1])


@pytest.mark.slow
def test_texts_of_a_background(task):
    importance = SlotImportance.of_background(task, TEXTS, batch_size=16)
    assert importance.num_batches == 3
    same = SlotImportance.of_background(task, dataset((TEXTS, LABELS)))
    np.testing.assert_array_equal(
        importance.document_frequencies[1], same.document_frequencies[1]
    )
    importance = SlotImportance.of_background(task, TEXTS, steps=2)
    assert importance.num_batches == 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [masked_lm, causal_lm])
def test_texts_alone_for_language_models(make):
    task = make()
    x, *_ = task.preprocessor(TEXTS)
    for data in (TEXTS, dataset(TEXTS), [TEXTS]):
        assert reads(task, data) == 2 * tokens_of(x)


@pytest.mark.slow
def test_pairs_of_texts(task):
    pairs = (TEXTS, TEXTS[::-1])
    expected = 2 * tokens_of(task.preprocessor(pairs, y=None))
    for data in (
        (pairs,),
        (pairs, LABELS),
        dataset((pairs, LABELS)),
        dataset((pairs,)),
        [(pairs,)],
    ):
        assert reads(task, data) == expected
    for data in (pairs, dataset(pairs), [pairs]):
        with pytest.raises(ValueError, match="in the place of labels.*pairs"):
            reads(task, data)


@pytest.mark.slow
def test_texts_as_dicts():
    """Question answering."""
    preprocessor = keras_pkm.models.BertQuestionAnswererPreprocessor(
        keras_hub.models.BertTokenizer(WORDS), sequence_length=12
    )
    task = keras_pkm.models.MemoryBertQuestionAnswerer(
        tiny_backbone(**ONE_LAYER), preprocessor
    )
    x = {"question": TEXTS, "context": TEXTS[::-1]}
    expected = 2 * tokens_of(preprocessor(x))
    y = {"start": LABELS, "end": LABELS}
    for data in (x, (x, y), dataset((x, y)), [(x, y)]):
        assert reads(task, data) == expected


@pytest.mark.slow
def test_features_are_taken_as_they_are():
    """With a preprocessor or without, and those of the backbone alone."""
    x, y, weights = masked_batch(fresh_rng())
    task = masked_lm()
    expected = probe_of(task.backbone).measure([(x,)])
    ours = {name: x[name] for name in task.backbone.input}
    for each in (x, ours):
        for data in (each, (each, y, weights), dataset((each, y)), [(each, y)]):
            assert probe_of(task).measure(data) == expected
    del ours["padding_mask"]
    for model in (task, task.backbone):
        for data in (ours, [(ours, y)], dataset((ours, y))):
            with pytest.raises(ValueError, match="a dict without padding_mask"):
                reads(model, data)
    task.preprocessor = None
    assert probe_of(task).measure((x, y)) == expected


def test_texts_need_a_preprocessor(task):
    texts = "must be .*texts, for a .* without a preprocessor"
    for model in (task.backbone, tiny_masked_lm(**ONE_LAYER)):
        for data in (TEXTS, (TEXTS, LABELS), dataset(TEXTS), [TEXTS]):
            with pytest.raises(ValueError, match=f"`data` {texts}"):
                reads(model, data)
    with pytest.raises(ValueError, match=f"`batches` {texts}"):
        SlotImportance.of_background(task.backbone, TEXTS)


def test_texts_are_batched(task):
    for data in (
        tf.data.Dataset.from_tensor_slices(TEXTS),
        tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)),
        "a b",
        [("a b", 1)],
    ):
        with pytest.raises(ValueError, match="`data` must be.*a single exam"):
            reads(task, data)


def test_a_model_of_texts():
    """A Keras model whose own inputs are strings."""
    texts = keras.Input((), dtype="string")
    ids = keras.layers.TextVectorization(vocabulary=["a", "b"])(texts)
    x = keras.layers.Embedding(5, 8)(ids)
    model = keras.Model(texts, ProductKeyMemory(8, 1, 2, 4)(x))
    assert reads(model, tf.constant(["a b", "b a"])) == 4
    assert reads(model, ["a b", "b a"]) == 4


@pytest.mark.slow
def test_texts_on_two_devices(mirrored):
    with mirrored.scope():
        task = classifier()
    expected = 2 * tokens_of(task.preprocessor(TEXTS))
    for form in ("a list", "a dataset with labels", "batches with labels"):
        assert reads(task, TEXT_FORMS[form](TEXTS)) == expected


@pytest.mark.slow
def test_forms_on_two_devices(mirrored):
    with mirrored.scope():
        model = make_model()
    x, y, _ = arrays()
    for data in (
        x,
        (x, y),
        dataset((x, y), 20),
        cut((x, y), 20),
        iter(cut((x, y), 20)),
        Batches(cut((x, y), 20)),
        mirrored.experimental_distribute_dataset(dataset((x, y), 20)),
    ):
        assert reads(model, data) == ROWS * 2 * 2
    with pytest.raises(ValueError, match="must have an end"):
        reads(model, dataset((x, y)).repeat())
    assert reads(model, dataset((x, y), 20).repeat(), steps=3) == 60 * 4


def test_batches_have_labels_and_weights(model):
    x, y, weights = arrays()
    for data in ((x, y, weights), dataset((x, y, weights), 32)):
        found = [*ModelBatches(data, model, "data")]
        for place, expected in enumerate((x, y, weights)):
            joined = np.concatenate([np.asarray(each[place]) for each in found])
            np.testing.assert_array_equal(joined, expected)
