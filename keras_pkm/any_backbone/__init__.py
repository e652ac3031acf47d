"""Memories in any backbone of KerasHub, decoders included."""

from keras_pkm.any_backbone.families import register_families

register_families()
