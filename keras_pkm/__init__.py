"""Large memory layers for Transformers in Keras."""

from keras_pkm import callbacks
from keras_pkm import converters
from keras_pkm import export
from keras_pkm import layers
from keras_pkm import metrics
from keras_pkm import models
from keras_pkm import ops
from keras_pkm import optimizers
from keras_pkm import teaching
from keras_pkm.version import __version__

__all__ = [
    "__version__",
    "callbacks",
    "converters",
    "export",
    "layers",
    "metrics",
    "models",
    "ops",
    "optimizers",
    "teaching",
]
