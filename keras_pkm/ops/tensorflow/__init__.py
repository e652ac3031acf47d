"""The functions of `keras_pkm.ops.backend.Backend` on TensorFlow."""

from keras_pkm.ops.tensorflow.checks import assert_later
from keras_pkm.ops.tensorflow.checks import is_known
from keras_pkm.ops.tensorflow.reads import embedding_bag
from keras_pkm.ops.tensorflow.replicas import components
from keras_pkm.ops.tensorflow.replicas import strategy_of
from keras_pkm.ops.tensorflow.replicas import sum_over_replicas
from keras_pkm.ops.tensorflow.row_gradients import entries
from keras_pkm.ops.tensorflow.row_gradients import keep_rows
from keras_pkm.ops.tensorflow.row_gradients import reduce_gradients
from keras_pkm.ops.tensorflow.row_gradients import with_entries
from keras_pkm.ops.tensorflow.row_update import update_rows
from keras_pkm.ops.tensorflow.search import search
from keras_pkm.ops.tensorflow.steps import compiled
from keras_pkm.ops.tensorflow.steps import gradients
from keras_pkm.ops.tensorflow.steps import uncompiled
from keras_pkm.ops.tensorflow.steps import update_if
from keras_pkm.ops.tensorflow.tables import present_value
from keras_pkm.ops.tensorflow.tables import read_rows
from keras_pkm.ops.tensorflow.tables import write_rows

# XLA's top-k on CPU takes about twice as long as TensorFlow's, and its gather
# of resource rows has no sparse gradient.
SUPPORTS_JIT = False
