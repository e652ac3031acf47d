"""Kinds of memory, each at a tiny size."""

import keras

from keras_pkm.layers import NGramMemory
from keras_pkm.layers import ProductKeyMemory


def _filled():
    return keras.initializers.RandomNormal(stddev=0.25, seed=1)


def product_keys(**options):
    return ProductKeyMemory(
        **{
            "num_sub_keys": 16,
            "num_heads": 2,
            "top_k": 4,
            "key_dim": 8,
            "query_normalization": "layer",
            "values_initializer": _filled(),
            **options,
        }
    )


def ngrams(**options):
    options = {"values_initializer": _filled(), **options}
    return NGramMemory(num_slots=64, num_heads=2, **options)


KINDS = {
    "product keys": product_keys,
    "gate": lambda: product_keys(gate=True, value_dim=12),
    "deep queries, dropout": lambda: product_keys(
        query_normalization="half_layer",
        query_hidden_dims=(12,),
        key_dropout=0.2,
        head_dropout=0.2,
    ),
    "n-grams": ngrams,
    "gated n-grams with tags": lambda: ngrams(
        gate="engram", tags=True, orders=(1, 2, 3)
    ),
}
