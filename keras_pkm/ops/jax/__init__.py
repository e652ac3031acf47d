"""The functions of `keras_pkm.ops.backend.Backend` on JAX."""

from keras_pkm.ops.jax.checks import assert_later
from keras_pkm.ops.jax.checks import is_known
from keras_pkm.ops.jax.reads import embedding_bag
from keras_pkm.ops.jax.reads import search
from keras_pkm.ops.jax.row_gradients import entries
from keras_pkm.ops.jax.row_gradients import keep_rows
from keras_pkm.ops.jax.row_gradients import reduce_gradients
from keras_pkm.ops.jax.row_gradients import with_entries
from keras_pkm.ops.jax.steps import compiled
from keras_pkm.ops.jax.steps import gradients
from keras_pkm.ops.jax.tables import present_value
from keras_pkm.ops.jax.tables import read_rows
from keras_pkm.ops.jax.tables import write_rows
from keras_pkm.ops.jax.updates import uncompiled
from keras_pkm.ops.jax.updates import update_if
from keras_pkm.ops.jax.updates import update_rows
from keras_pkm.ops.one_device import components
from keras_pkm.ops.one_device import strategy_of
from keras_pkm.ops.one_device import sum_over_replicas

SUPPORTS_JIT = True
