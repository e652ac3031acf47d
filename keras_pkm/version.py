"""The version of keras_pkm."""

__version__ = "0.1.0"
