"""The functions of `keras_pkm.ops.backend.Backend` on torch."""

from keras_pkm.ops.one_device import components
from keras_pkm.ops.one_device import strategy_of
from keras_pkm.ops.one_device import sum_over_replicas
from keras_pkm.ops.torch.checks import assert_later
from keras_pkm.ops.torch.checks import is_known
from keras_pkm.ops.torch.reads import embedding_bag
from keras_pkm.ops.torch.reads import search
from keras_pkm.ops.torch.row_gradients import entries
from keras_pkm.ops.torch.row_gradients import keep_rows
from keras_pkm.ops.torch.row_gradients import reduce_gradients
from keras_pkm.ops.torch.row_gradients import with_entries
from keras_pkm.ops.torch.steps import compiled
from keras_pkm.ops.torch.steps import gradients
from keras_pkm.ops.torch.tables import present_value
from keras_pkm.ops.torch.tables import read_rows
from keras_pkm.ops.torch.tables import write_rows
from keras_pkm.ops.torch.updates import uncompiled
from keras_pkm.ops.torch.updates import update_if
from keras_pkm.ops.torch.updates import update_rows

SUPPORTS_JIT = True
