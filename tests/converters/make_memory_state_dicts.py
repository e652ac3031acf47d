"""Makes memory_state_dicts.npz: small random memories of other packages.

    python tests/converters/make_memory_state_dicts.py XLM PKM META

The arguments are directories of clones of github.com/facebookresearch/XLM,
github.com/lucidrains/product-key-memory (0.3.0) and
github.com/facebookresearch/memory. It needs torch and einops. What the
originals need besides, for GPUs and for options that are not used here, is
replaced by empty modules.
"""

import argparse
import pathlib
import sys
import types
from unittest import mock

import numpy as np
import torch

DIM, HEADS, KEYS, TOP_K, KEY_DIM, TOKENS = 12, 2, 7, 4, 6, 9


def main():
    directories = sys.argv[1:]
    sys.path[:0] = directories
    for name in ("xformers", "triton", "triton.language", "faiss"):
        sys.modules.setdefault(name, mock.MagicMock())
    sys.modules["colt5_attention"] = types.SimpleNamespace(topk=None)
    originals = {**xlm(), **product_key_memory(), **memory_plus()}
    arrays = {}
    for name, (module, prefix, inputs) in originals.items():
        randomize(module)
        module.eval()
        with torch.no_grad():
            arrays[f"{name}|outputs"] = module(inputs).numpy()
        arrays[f"{name}|inputs"] = inputs.numpy()
        for key, value in module.state_dict().items():
            arrays[f"{name}|state|{prefix}{key}"] = value.numpy()
    np.savez_compressed(
        pathlib.Path(__file__).with_name("memory_state_dicts.npz"), **arrays
    )


def randomize(module):
    torch.manual_seed(0)
    for name, each in module.state_dict().items():
        if name.endswith("running_var"):
            each.uniform_(0.5, 2)
        elif each.is_floating_point():
            each.normal_(std=0.7)


def tokens(*shape):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, DIM, generator=generator)


def xlm():
    from xlm.model.memory.memory import HashingMemory

    parser = argparse.ArgumentParser()
    HashingMemory.register_args(parser)

    def make(*flags):
        sizes = (HEADS, KEYS, TOP_K, KEY_DIM)
        names = ("heads", "n_keys", "knn", "k_dim")
        given = [f"--mem_{n}={size}" for n, size in zip(names, sizes)]
        params = parser.parse_args([*given, *flags])
        params.optimizer = "adam"
        HashingMemory.check_params(params)
        return HashingMemory.build(DIM, DIM, params)

    return {
        "xlm": (make(), "memories.4_in.", tokens(2, TOKENS)),
        "xlm, batch norm": (
            make("--mem_query_batchnorm=True"),
            "module.memories.4_after.",
            tokens(2, TOKENS),
        ),
        "xlm, deeper": (
            make(
                "--mem_query_batchnorm=True",
                "--mem_query_layer_sizes=0,10,8,0",
            ),
            "memories.11_in.",
            tokens(2, TOKENS),
        ),
        "xlm, no bias": (
            make("--mem_query_bias=False"),
            "memories.0_in.",
            tokens(2, TOKENS),
        ),
    }


def product_key_memory():
    from product_key_memory import PKM

    sizes = {"heads": HEADS, "num_keys": KEYS, "topk": TOP_K}
    return {
        "product-key-memory": (
            PKM(DIM, dim_head=KEY_DIM // 2, **sizes),
            "",
            tokens(2, TOKENS),
        )
    }


def memory_plus():
    import torch.distributed as distributed

    distributed._composable = mock.MagicMock()
    for name in ("_composable", "_composable.fsdp"):
        sys.modules.setdefault(f"torch.distributed.{name}", mock.MagicMock())
    from lingua.product_key import memory

    class Bag(torch.nn.Module):
        """The sum that the original computes on GPUs."""

        def __init__(self, size, dim):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(size, dim))

        def forward(self, slots, weights):
            return torch.nn.functional.embedding_bag(
                slots, self.weight, per_sample_weights=weights, mode="sum"
            )

    memory.xFormerEmbeddingBag = Bag
    sizes = {"mem_heads": HEADS, "mem_n_keys": KEYS, "mem_knn": TOP_K}

    def make(**options):
        memory.HashingMemory.VALUES = None
        return memory.HashingMemory(
            DIM, DIM, mem_k_dim=KEY_DIM, **sizes, **options
        )

    prefix = "layers.3.feed_forward."
    return {
        "memory-plus": (make(), prefix, tokens(2, TOKENS)),
        "memory-plus, narrow": (make(mem_v_dim=8), prefix, tokens(2, TOKENS)),
        "memory-plus, no gate": (
            make(swilu_projection=False),
            prefix,
            tokens(2, TOKENS),
        ),
    }


if __name__ == "__main__":
    main()
