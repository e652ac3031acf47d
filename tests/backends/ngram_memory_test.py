"""Memories of hashed n-grams: hashes, oracle, tags, errors."""

import keras
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers import NGramMemory
from keras_pkm.layers.token_ids import last_ids
from keras_pkm.layers.token_ids import token_ids_of_layers
from keras_pkm.ops.backend import backend
from keras_pkm.ops.ngram_hashes import murmur3
from keras_pkm.ops.ngram_hashes import ngrams
from tests.backends.stepping import MODES
from tests.backends.stepping import assert_close
from tests.backends.stepping import assert_slopes
from tests.backends.stepping import outputs_and_gradients
from tests.backends.stepping import run
from tests.contracts import fresh_rng
from tests.contracts import to_numpy

DIM, LENGTH, SLOTS = 8, 9, 30
IDS = np.array([[5, 6, 7, 5, 6, 7, 8, 5, 6], [2, 2, 2, 2, 9, 5, 6, 0, 0]])
MASK = np.array([[1] * 9, [1] * 7 + [0] * 2], "bool")


def murmur3_by_hand(words, seed):
    """MurmurHash3, x86, 32 bits, in Python's integers."""

    def rotate(word, bits):
        return (word << bits | word >> (32 - bits)) % 2**32

    hashed = seed % 2**32
    for word in words:
        word = rotate(word * 0xCC9E2D51 % 2**32, 15) * 0x1B873593 % 2**32
        hashed = (rotate(hashed ^ word, 13) * 5 + 0xE6546B64) % 2**32
    hashed ^= 4 * len(words)
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B % 2**32
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 % 2**32
    return hashed ^ hashed >> 16


def test_the_hash_is_murmur3():
    # Of the four bytes 21 43 65 87, from the reference's own tests.
    assert murmur3_by_hand([0x87654321], 0) == 0xF55B516B
    assert murmur3_by_hand([0x87654321], 0x5082EDEE) == 0x2362F9DE
    assert murmur3_by_hand([], 1) == 0x514E28B7


@pytest.mark.parametrize("mode", [*MODES, "numpy"])
def test_hashes_are_those_by_hand(mode):
    """Of the last words of each row, the last one first."""
    words = fresh_rng().integers(0, 2**31 - 1, (40, 3)).astype("int32")
    words[0] = 0
    seeds = np.array([0, 1, 2**32 - 1])
    if mode == "numpy":
        found = murmur3(words, (2, 3), seeds, np)
    else:
        (found,) = run(
            lambda w: [murmur3(w, (2, 3), seeds)],
            [],
            mode,
            words,
            # Unsigned integers must wrap in compiled code, too.
            compiler="inductor",
        )
    assert found.dtype == "int32"
    expected = [
        [
            [murmur3_by_hand(row[::-1][:order], int(seed)) for order in (2, 3)]
            for seed in seeds
        ]
        for row in words.tolist()
    ]
    np.testing.assert_array_equal(found.view("uint32"), expected)


@pytest.mark.parametrize("mode", MODES)
def test_slots_are_the_same_on_all_backends(mode):
    """They are stored here: presets would read other rows if they changed."""
    contexts = np.array([[1, 2, 3], [50256, 0, 128255], [-1, 7, 7]], "int32")
    slots, tags, are_whole = run(
        lambda each: list(ngrams(each, (2, 3), 2, 1_000_003, seed=1)),
        [],
        mode,
        contexts,
    )
    assert slots.tolist() == STORED_SLOTS
    assert tags.tolist() == STORED_TAGS
    assert are_whole.tolist() == [[True, True], [True, True], [True, False]]


@pytest.mark.parametrize("lib", [keras.ops, np])
def test_an_ngram_with_padding_in_it_is_not_read(lib):
    contexts = np.array([[1, -1, 3], [-1, 2, 3], [1, 2, -1]], "int32")
    if lib is keras.ops:
        contexts = keras.ops.convert_to_tensor(contexts)
    found = ngrams(contexts, (1, 2, 3), 1, 100, seed=0, lib=lib)
    assert to_numpy(found.are_whole).tolist() == [
        [True, False, False],
        [True, True, False],
        [False, False, False],
    ]


def test_ids_must_be_integers():
    """Under a policy of half precision Keras would have rounded them."""
    memory = make_memory()
    inputs = np.zeros((2, LENGTH, DIM), "float32")
    with pytest.raises(ValueError, match="`token_ids` must be integers"):
        memory(inputs, token_ids=IDS.astype("float32"))
    for dtype in ("int64", "uint16"):
        memory(inputs, token_ids=IDS.astype(dtype))


# Keras tries further paths before it raises.
@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_weights_for_other_addresses_are_refused(tmp_path):
    path = tmp_path / "model.weights.h5"

    def model(**options):
        inputs = (
            keras.Input((LENGTH, DIM)),
            keras.Input((LENGTH,), dtype="int32"),
        )
        memory = NGramMemory(SLOTS, **options)
        return keras.Model(inputs, memory(inputs[0], token_ids=inputs[1]))

    one = model(orders=(2, 3))
    one.save_weights(path)
    model(orders=(2, 3)).load_weights(path)
    for options in ({"orders": (2, 4)}, {"hash_seed": 1}):
        (name,) = options
        with pytest.raises(ValueError, match=f"{name}=.* instead of"):
            model(**options).load_weights(path)
    for layer in one.layers:
        if isinstance(layer, NGramMemory):
            # As files of earlier versions are.
            layer.addressing = dict
    one.save_weights(path)
    model(hash_seed=1).load_weights(path)


STORED_SLOTS = [
    [[863969, 262577], [450386, 943987]],
    [[547227, 856663], [452665, 441048]],
    [[500111, 691119], [639440, 395847]],
]
STORED_TAGS = [
    [91710121, 1255345568],
    [1086909055, 425210402],
    [269311663, 1246414599],
]


def make_memory(**options):
    memory = NGramMemory(SLOTS, num_heads=2, **options)
    memory.build((None, None, DIM))
    rng = np.random.default_rng(1)
    for weight in memory.trainable_weights:
        weight.assign(rng.normal(size=weight.shape, scale=0.5))
    return memory


def slot_by_hand(ngram, head):
    return murmur3_by_hand(ngram[::-1], head) % 2**31 % SLOTS


def path_of(weight):
    return weight.path.split("/", 1)[1]


def rms(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def by_hand(weights, inputs, memory, tags):
    """Outputs in float64, n-gram by n-gram."""
    outputs = np.zeros(inputs.shape)
    for text, place in np.argwhere(MASK):
        rows = []
        for head in range(2):
            for order in memory.orders:
                first = place - order + 1
                ngram = [
                    int(each) for each in IDS[text, max(0, first) : place + 1]
                ]
                slot = slot_by_hand(ngram, head)
                is_read = first >= 0
                if tags is not None:
                    is_read = is_read and tags.get(slot) == tuple(ngram)
                rows.append(is_read * weights["table/values"][slot])
        x = inputs[text, place]
        if memory.gate is None:
            outputs[text, place] = sum(rows)
            continue
        read = np.concatenate(rows)
        keys = rms(read @ weights["key_projection/kernel"])
        keys = keys * weights["key_normalization/scale"]
        fit = keys @ (rms(x) * weights["input_normalization/scale"])
        fit /= np.sqrt(DIM)
        root = np.sqrt(max(abs(fit), 1e-6))
        gate = 1 / (1 + np.exp(-np.sign(fit) * root))
        outputs[text, place] = gate * read @ weights["output_projection/kernel"]
    return outputs


@pytest.mark.parametrize("mode", MODES)
def test_what_a_variable_contains_is_known_while_a_step_is_traced(mode):
    """On JAX by `_value`, which is private, unless `fit` holds it."""
    variable = keras.Variable([1, 2, 3], dtype="int32", trainable=False)
    seen = []

    def step(x):
        seen.append(backend.present_value(variable))
        return [x]

    run(step, [variable], mode, np.ones(2))
    assert all(each.tolist() == [1, 2, 3] for each in seen) and seen
    if keras.backend.backend() == "jax":
        variable._value = None
        assert backend.present_value(variable) is None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("gate", [None, "engram"])
@pytest.mark.parametrize("tagged", [False, True])
def test_equals_n_grams_by_hand(tagged, gate, mode):
    memory = make_memory(gate=gate, tags=tagged)
    tags = None
    if tagged:
        # Of n-grams that share a row the first one keeps it.
        tags, lost = {}, 0
        for ngram in ((5, 6), (6, 7), (5, 6, 7), (7, 8), (2, 2), (2, 2, 2)):
            claim = memory.claim(ngram)
            for head in range(2):
                slot = slot_by_hand(ngram, head)
                lost += tags.setdefault(slot, ngram) != ngram
            assert claim.rows + claim.lost == 2 and claim.lost <= lost
    rng = np.random.default_rng(2)
    inputs, upstream = rng.normal(size=(2, 2, LENGTH, DIM)).astype("float32")
    exact = {
        path_of(weight): to_numpy(weight).astype("float64")
        for weight in memory.weights
    }
    expected = by_hand(exact, inputs, memory, tags)
    assert expected[MASK].any() and not expected[~MASK].any()
    outputs, gradients = outputs_and_gradients(
        lambda x: memory(x, mask=MASK, training=True, token_ids=IDS),
        memory.trainable_weights,
        upstream,
        mode,
        inputs,
    )
    assert_close(outputs, expected)
    names = map(path_of, memory.trainable_weights)
    assert_slopes(
        lambda moved: (by_hand(moved, inputs, memory, tags) * upstream).sum(),
        exact,
        dict(zip(names, gradients)),
        rng,
    )


def test_ids_before_the_inputs_and_from_the_context():
    memory = make_memory()
    inputs = np.random.default_rng(3).normal(size=(2, LENGTH, DIM))
    whole = to_numpy(memory(inputs, token_ids=IDS))
    part = to_numpy(memory(inputs[:, 4:], token_ids=IDS[:, 2:]))
    np.testing.assert_array_equal(part, whole[:, 4:])
    with token_ids_of_layers(keras.ops.convert_to_tensor(IDS)):
        found = to_numpy(memory(inputs))
    np.testing.assert_array_equal(found, whole)
    for x in (inputs, keras.Input((LENGTH, DIM))):
        with pytest.raises(ValueError, match="`token_ids` must be given"):
            memory(x)


def test_last_ids():
    found = last_ids(np.zeros((1, 3, 2)), np.array([[4, 5, 6]]), 2)
    assert to_numpy(found).tolist() == [[[-1, 4], [4, 5], [5, 6]]]


@pytest.mark.parametrize(
    "inputs, ids, match",
    [
        ((2, 9), (2, 9), r"of shape \(batch, length, dim\)"),
        ((2, 9, 8), (9,), r"token_ids of shape \(9,\)"),
        ((2, 9, 8), (2, 8), "8 ids for 9 tokens"),
    ],
)
def test_wrong_shapes(inputs, ids, match):
    memory = NGramMemory(SLOTS)
    memory.build((None, None, inputs[-1]))
    with pytest.raises(ValueError, match=match):
        memory(np.zeros(inputs), token_ids=np.zeros(ids, "int32"))


@pytest.mark.parametrize(
    "options, match",
    [
        ({"orders": ()}, "`orders` must be different numbers"),
        ({"orders": (2, 2)}, "`orders` must be different numbers"),
        ({"orders": (0,)}, "`orders` must be a positive integer"),
        ({"orders": 2}, "`orders` must be a list of positive integers"),
        ({"gate": "silu"}, '`gate` must be "engram" or None'),
        ({"hash_seed": -1}, "`hash_seed` must be an integer of at least 0"),
        ({"num_heads": 0}, "`num_heads` must be a positive integer"),
    ],
)
def test_wrong_options(options, match):
    with pytest.raises(ValueError, match=match):
        NGramMemory(SLOTS, **options)


def test_claims():
    memory = make_memory(orders=(1, 2, 3), tags=True)
    ids = [4, 5, 6, 7]
    first = memory.claim(ids, span=(1, 4))
    # The same n-gram, in another text, has these rows already.
    assert memory.claim([9, 5, 6, 7], span=(1, 4)) == first
    assert first.rows == 2 and not first.lost
    parts = memory.claim(ids, span=(1, 4), parts=True)
    # Six n-grams, two hashes each.
    assert parts.rows + parts.lost == 12
    tags = to_numpy(memory.table.tags)
    assert (tags != 0).sum() == parts.rows
    # Until no row is free: whoever comes now gets none.
    memory.claim(np.random.default_rng(0).integers(0, 99, 200), parts=True)
    assert to_numpy(memory.table.tags).all()
    assert memory.claim([1, 2, 3]) == (0, 2)
    # Nobody has lost a row.
    np.testing.assert_array_equal(
        to_numpy(memory.table.tags)[tags != 0], tags[tags != 0]
    )


@pytest.mark.parametrize("order", [2, 5, 9])
def test_a_subject_of_any_length_is_read_where_it_ends(order):
    memory = make_memory(orders=range(2, 10), tags=True)
    subject = list(range(11, 11 + order))
    assert memory.claim(subject).rows
    ids = np.array([[3, *subject, 4, *subject[:-1], 5]])
    x = np.zeros((1, ids.shape[1], DIM))
    _, (_, weights) = memory(x, token_ids=ids, return_memory_access=True)
    where = np.argwhere(to_numpy(weights).any(2)[0]).tolist()
    assert where == [[order, order - 2]]


@pytest.mark.parametrize(
    "ids, span, match",
    [
        ([1, 2, 3, 4], None, r"orders, \(2, 3\). Received: span=\(0, 4\)"),
        ([1, 2, 3], (2, 3), "of 1 tokens"),
        ([1, 2, 3], (2, 4), "within the 3 tokens"),
        ([1, -2], None, "integers of at least 0"),
        ([1.0, 2.0], None, "integers of at least 0"),
    ],
)
def test_wrong_claims(ids, span, match):
    memory = make_memory(tags=True)
    with pytest.raises(ValueError, match=match):
        memory.claim(ids, span)
    assert not to_numpy(memory.table.tags).any()


@pytest.mark.parametrize("tags", [False, True])
def test_a_table_with_tags_is_read_by_them(tags):
    table = keras_pkm.layers.ValueTable(SLOTS, DIM, tags=not tags)
    memory = NGramMemory(SLOTS, tags=tags, table=table)
    with pytest.raises(ValueError, match=f"table with tags={not tags}"):
        memory.build((None, None, DIM))


def test_claims_need_tags():
    with pytest.raises(ValueError, match="with `tags=True`"):
        make_memory().claim([1, 2])


def test_training_without_a_claimed_row_is_an_error():
    memory = NGramMemory(SLOTS, tags=True)
    ids = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(10, DIM)(ids)
    x = x + memory(x, token_ids=ids)
    model = keras.Model(ids, keras.layers.Dense(1)(x))
    model.compile(keras_pkm.optimizers.PKMAdam(), "mse", run_eagerly=True)
    y = np.zeros((2, LENGTH, 1))
    if keras.backend.backend() != "jax":  # whose `fit` holds the values
        with pytest.raises(ValueError, match="Call `claim` of its memory"):
            model.fit(IDS, y, verbose=0)
    memory.claim([5, 6])
    model.fit(IDS, y, verbose=0)
