"""Finds the classes of a model's kind, by its name or its backbone."""

import keras_hub

from training.loading.decoder_families import DECODERS
from training.loading.decoder_families import DecoderFamily
from training.loading.encoder_families import FAMILIES
from training.loading.encoder_families import Family


def family_of(backbone: keras_hub.models.Backbone) -> Family | None:
    """Returns the family of an encoder, plain or with memory."""
    # A backbone with memory has its plain one.
    plain = getattr(backbone, "plain_backbone", backbone)
    for family in FAMILIES:
        if isinstance(plain, family.plain):
            return family
    return None


def decoder_family_of(
    backbone: keras_hub.models.Backbone,
) -> DecoderFamily | None:
    """Returns the family of a decoder, plain or with memory."""
    # A backbone with memory has its plain one.
    plain = getattr(backbone, "plain_backbone", backbone)
    for family in DECODERS:
        if isinstance(plain, family.plain):
            return family
    return None


def family_named(name: str) -> Family | DecoderFamily:
    """Returns the family of that name."""
    return next(
        family for family in (*FAMILIES, *DECODERS) if family.name == name
    )
