"""The sizes of the compared models, for all frameworks."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class MemorySizes:
    """Sizes of a product-key memory; the defaults are the paper's."""

    # Number of sub-keys for each half of a query. The number of slots is its
    # square.
    num_sub_keys: int = 512
    # Width of inputs, values and output.
    width: int = 768
    # Number of heads, each with its own queries and sub-keys.
    num_heads: int = 4
    # Number of slots that each head reads for a token.
    top_k: int = 32
    # Width of a head's query.
    key_dim: int = 256

    @property
    def table_bytes(self) -> int:
        """The size of the value table."""
        return 4 * self.num_sub_keys**2 * self.width


@dataclasses.dataclass(frozen=True)
class BertSizes:
    """Sizes of a BERT; the defaults are BASE with the paper's memories."""

    # Number of encoder layers.
    num_layers: int = 12
    # Width of the encoder layers.
    hidden_dim: int = 768
    # Number of attention heads.
    num_heads: int = 12
    # Width of the feed-forward networks.
    intermediate_dim: int = 3072
    # Layers with a memory, counted from 1.
    memory_layers: tuple[int, ...] = (4, 8)
    # Number of sub-keys for each half of a query. The number of slots is its
    # square.
    num_sub_keys: int = 512
    # Number of heads of a memory.
    memory_heads: int = 4
    # Number of slots that each head reads for a token.
    top_k: int = 32
    # Width of a head's query.
    key_dim: int = 256
    # Number of tokens of the vocabulary.
    vocabulary_size: int = 30522


BASE = BertSizes()
LARGE = BertSizes(
    num_layers=24,
    hidden_dim=1024,
    num_heads=16,
    intermediate_dim=4096,
    memory_layers=(8, 16),
)


def batch(sizes: MemorySizes, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns inputs and the gradient of the output, `(tokens, width)` each."""
    rng = np.random.default_rng(0)
    shape = (tokens, sizes.width)
    return tuple(rng.standard_normal(shape).astype("float32") for _ in range(2))
