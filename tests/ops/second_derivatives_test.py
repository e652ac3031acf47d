"""Derivatives beyond the first, against plain operations in float64."""

import contextlib

import pytest
import tensorflow as tf

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.ops import embedding_bag
from keras_pkm.ops import portable_reads
from keras_pkm.ops import product_key_search
from keras_pkm.ops import use_implementation
from tests.contracts import assert_close
from tests.contracts import fixed_rng

ROWS, WIDTH, TOKENS, READS = 13, 4, 6, 3
HEADS, SUB_KEYS, KEY_DIM, TOP_K = 2, 5, 4, 3
both = pytest.mark.parametrize("implementation", ["fastest", "portable"])
in_graph = pytest.mark.parametrize("graph", [False, True])


def dense(gradients):
    """Norms of slices need rows that are not repeated."""
    return [tf.convert_to_tensor(gradient) for gradient in gradients]


def nested_tapes(function, *variables):
    with tf.GradientTape() as outer:
        outer.watch(variables)
        with tf.GradientTape() as inner:
            inner.watch(variables)
            loss = tf.reduce_sum(tf.sin(function(*variables)))
        gradients = dense(inner.gradient(loss, variables))
        penalty = sum(tf.reduce_sum(tf.sin(each)) for each in gradients)
    return dense(outer.gradient(penalty, variables))


def third_derivatives(function, *variables):
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(variables)
        first, second = nested_tapes(function, *variables)
        value = tf.reduce_sum(first**2) + tf.reduce_sum(second**2)
    return dense(outer.gradient(value, variables))


def through_a_function_of_its_own(function, *variables):
    return nested_tapes(tf.function(function), *variables)


def of_the_norm(function, *variables):
    """As `tf.clip_by_global_norm` uses it, of slices if there are any."""
    with tf.GradientTape() as outer:
        outer.watch(variables)
        with tf.GradientTape() as inner:
            inner.watch(variables)
            loss = tf.reduce_sum(tf.sin(function(*variables)))
        gradients = inner.gradient(loss, variables)
        if gradients[0].dtype == "float64":
            gradients = dense(gradients)
        norm = tf.linalg.global_norm(gradients)
    return dense(outer.gradient(norm, variables))


def jacobians(function, *variables):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(variables)
        outputs = tf.sin(function(*variables))
    return dense(tape.jacobian(outputs, variables))


def batch_jacobian(function, *variables):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(variables)
        outputs = tf.sin(function(*variables))
    return [tape.batch_jacobian(outputs, variables[1])]


def forward_mode(function, *variables):
    directions = [
        tf.cast(tf.random.stateless_normal(each.shape, (1, 2)), each.dtype)
        for each in variables
    ]
    results = []
    for variable, direction in zip(variables, directions):
        with tf.autodiff.ForwardAccumulator(variable, direction) as forward:
            with tf.GradientTape() as tape:
                tape.watch(variables)
                outputs = tf.sin(function(*variables))
            gradient = tape.gradient(outputs, variables[-1])
        results += [forward.jvp(x) for x in (outputs, gradient)]
    return results


def of_two_rows(function, *variables):
    """The gradient of the outputs is slices."""
    return nested_tapes(
        lambda *x: tf.gather(function(*x), [1, 3, 3]), *variables
    )


KINDS = [
    nested_tapes,
    third_derivatives,
    through_a_function_of_its_own,
    of_the_norm,
    jacobians,
    batch_jacobian,
    forward_mode,
    of_two_rows,
]


def check(kind, function, oracle, variables, implementation, graph):
    """Compares derivatives by float32 variables with those of the oracle."""
    exact = [
        type(variable)(value) if isinstance(variable, tf.Variable) else value
        for variable in variables
        for value in [tf.cast(variable, "float64")]
    ]
    run = tf.function(kind, autograph=False) if graph else kind
    with use_implementation(implementation):
        actual = run(function, *variables)
    for one, other in zip(actual, kind(oracle, *exact), strict=True):
        assert_close(one, other, 1e-5)


@pytest.mark.slow
@both
@in_graph
@pytest.mark.parametrize("kind", KINDS)
def test_embedding_bag(kind, implementation, graph):
    rng = fixed_rng()
    slots = tf.constant(rng.integers(0, 6, (TOKENS, READS)), "int32")
    check(
        kind,
        lambda table, weights: embedding_bag(table, slots, weights),
        lambda table, weights: tf.einsum(
            "tj,tjw->tw", weights, tf.gather(table, slots)
        ),
        [
            tf.Variable(rng.normal(size=(ROWS, WIDTH)).astype("float32")),
            tf.constant(rng.normal(size=(TOKENS, READS)), "float32"),
        ],
        implementation,
        graph,
    )


@pytest.mark.slow
@both
@in_graph
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind is not batch_jacobian]
)
def test_product_key_search(kind, implementation, graph):
    def oracle(sub_keys, queries):
        """Scores all pairs."""
        first, second = tf.split(queries, 2, axis=2)
        scores = (
            tf.einsum("thd,hnd->thn", first, sub_keys[:, 0])[..., None]
            + tf.einsum("thd,hnd->thn", second, sub_keys[:, 1])[:, :, None]
        )
        scores = tf.reshape(scores, (TOKENS, HEADS, SUB_KEYS**2))
        return tf.math.top_k(scores, TOP_K)[0]

    rng = fixed_rng()
    keys = rng.normal(size=(HEADS, 2, SUB_KEYS, KEY_DIM // 2))
    queries = rng.normal(size=(TOKENS, HEADS, KEY_DIM))
    refused = kind is jacobians and graph and implementation == "fastest"
    with (
        # TensorFlow cannot vectorize the kernels' sparse products.
        pytest.raises(ValueError, match="experimental_use_pfor to False")
        if refused
        else contextlib.nullcontext()
    ):
        check(
            kind,
            lambda sub_keys, queries: product_key_search(
                queries, sub_keys, TOP_K
            )[1],
            oracle,
            [tf.constant(keys, "float32"), tf.constant(queries, "float32")],
            implementation,
            graph,
        )


def test_hessians():
    """They exist in graphs alone."""
    rng = fixed_rng()
    table = tf.Variable(rng.normal(size=(ROWS, WIDTH)).astype("float32"))
    slots = tf.constant(rng.integers(0, 6, (TOKENS, READS)), "int32")

    @tf.function
    def hessian(weights):
        outputs = embedding_bag(table, slots, weights, "fastest")
        return tf.hessians(tf.reduce_sum(tf.sin(outputs)), [weights])[0]

    weights = tf.constant(rng.normal(size=(TOKENS, READS)), "float32")
    with tf.GradientTape() as outer:
        outer.watch(weights)
        with tf.GradientTape() as inner:
            inner.watch(weights)
            rows = tf.gather(table, slots)
            outputs = tf.einsum("tj,tjw->tw", weights, rows)
            loss = tf.reduce_sum(tf.sin(outputs))
        gradient = inner.gradient(loss, weights)
    assert_close(hessian(weights), outer.jacobian(gradient, weights))


@pytest.mark.parametrize(
    "normalization, dtype",
    [
        ("batch", "float32"),
        pytest.param("layer", "mixed_bfloat16", marks=pytest.mark.slow),
    ],
)
@both
def test_gradient_penalty_of_a_layer(implementation, normalization, dtype):
    """As a discriminator has it: by its inputs, then by its weights."""
    memory = ProductKeyMemory(
        5,
        num_heads=2,
        top_k=3,
        key_dim=4,
        query_normalization=normalization,
        dtype=dtype,
    )
    inputs = tf.constant(fixed_rng().normal(size=(7, 8)), "float32")
    memory(inputs)

    @tf.function(autograph=False)
    def penalty():
        weights = memory.trainable_variables
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(inputs)
                outputs = tf.cast(memory(inputs, training=True), "float32")
                loss = tf.reduce_sum(tf.sin(outputs))
            gradient = inner.gradient(loss, inputs)
            norm = tf.sqrt(tf.reduce_sum(gradient**2) + 1e-12)
        return outer.gradient(norm, weights, unconnected_gradients="zero")

    with use_implementation(implementation):
        actual = dense(penalty())
    with portable_reads(training=True):
        stock = tf.function(penalty.python_function, autograph=False)
        expected = dense(stock())
    for one, other, variable in zip(
        actual, expected, memory.trainable_variables
    ):
        # Batch norm takes its gradient away, up to rounding.
        if variable.name != "bias" or normalization == "layer":
            assert_close(one, other, 1e-4 if dtype == "float32" else 0.05)
