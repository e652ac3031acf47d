"""The memory layer of the product-key-memory package, and the best in torch."""

import math

import product_key_memory
import torch

from benchmarks.contenders.sizes import MemorySizes
from benchmarks.contenders.sizes import batch
from benchmarks.timing.in_turn import Case


class BagMemory(torch.nn.Module):
    """The fastest implementation of the layer that we could write in torch.

    One batched product computes all sub-scores, top-k runs over only the pairs
    of sub-keys that can be among the best, and `EmbeddingBag` sums rows without
    storing them. It runs eagerly.
    """

    def __init__(self, sizes: MemorySizes, sparse: bool = False):
        super().__init__()
        self.sizes = sizes
        queries = sizes.num_heads * sizes.key_dim
        half = sizes.key_dim // 2
        self.query = torch.nn.Linear(sizes.width, queries)
        self.norm = torch.nn.BatchNorm1d(queries)
        self.keys = torch.nn.Parameter(
            torch.empty(sizes.num_heads * 2, half, sizes.num_sub_keys)
        )
        torch.nn.init.uniform_(self.keys, -(half**-0.5), half**-0.5)
        self.bag = torch.nn.EmbeddingBag(
            sizes.num_sub_keys**2, sizes.width, mode="sum", sparse=sparse
        )
        torch.nn.init.normal_(self.bag.weight, std=1 / math.sqrt(sizes.width))
        k = sizes.top_k
        pairs = [
            (a, b) for a in range(k) for b in range(k) if (a + 1) * (b + 1) <= k
        ]
        self.register_buffer("pairs", torch.tensor(pairs).T.contiguous())

    def forward(self, inputs):
        sizes = self.sizes
        queries = self.norm(self.query(inputs))
        queries = queries.view(-1, sizes.num_heads * 2, sizes.key_dim // 2)
        scores = torch.bmm(queries.transpose(0, 1), self.keys)
        scores, slots = scores.topk(sizes.top_k, dim=-1)
        shape = (sizes.num_heads, 2, -1, sizes.top_k)
        scores, slots = scores.view(shape), slots.view(shape)
        rows, columns = self.pairs
        candidates = scores[:, 0][..., rows] + scores[:, 1][..., columns]
        scores, best = candidates.topk(sizes.top_k, dim=-1)  # (h, t, k)
        slots = slots[:, 0].gather(-1, rows[best]) * sizes.num_sub_keys + slots[
            :, 1
        ].gather(-1, columns[best])
        reads = (-1, sizes.num_heads * sizes.top_k)
        return self.bag(
            slots.transpose(0, 1).reshape(reads),
            per_sample_weights=scores.softmax(-1)
            .transpose(0, 1)
            .reshape(reads),
        )


def package(sizes: MemorySizes, tokens: int) -> Case:
    """`product_key_memory.PKM` with `torch.optim.Adam`."""
    layer = product_key_memory.PKM(
        sizes.width,
        heads=sizes.num_heads,
        num_keys=sizes.num_sub_keys,
        topk=sizes.top_k,
        # In that package, the width of half a query. Its batch norm fails.
        dim_head=sizes.key_dim // 2,
    )
    return _case(layer, torch.optim.Adam, sizes, (1, tokens, sizes.width))


def bag(sizes: MemorySizes, tokens: int, fused: bool) -> Case:
    """`BagMemory` with `torch.optim.Adam`."""

    def optimizer(parameters):
        return torch.optim.Adam(parameters, fused=fused or None)

    return _case(BagMemory(sizes), optimizer, sizes, (tokens, sizes.width))


def sparse_bag(sizes: MemorySizes, tokens: int) -> Case:
    """`BagMemory` with sparse gradients and `torch.optim.SparseAdam`."""
    layer = BagMemory(sizes, sparse=True)

    def optimizer(parameters):
        rest = [p for p in parameters if p is not layer.bag.weight]
        return _Both(
            torch.optim.Adam(rest), torch.optim.SparseAdam([layer.bag.weight])
        )

    return _case(layer, optimizer, sizes, (tokens, sizes.width))


class _Both:
    """Two optimizers whose steps are taken together."""

    def __init__(self, *optimizers):
        self._optimizers = optimizers

    def step(self):
        for optimizer in self._optimizers:
            optimizer.step()


def _case(layer, make_optimizer, sizes, shape):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer.to(device)
    inputs, upstream = (
        torch.from_numpy(array).to(device).view(shape)
        for array in batch(sizes, math.prod(shape[:-1]))
    )
    parameters = list(layer.parameters())
    optimizer = make_optimizer(parameters)

    def end():
        if device == "cuda":
            torch.cuda.synchronize()

    def forward():
        layer.eval()
        with torch.inference_mode():
            outputs = layer(inputs)
        end()
        return outputs

    def backward():
        layer.train()
        for parameter in parameters:
            parameter.grad = None
        layer(inputs).backward(upstream)
        end()

    def step():
        backward()
        optimizer.step()
        end()

    return Case(
        {
            "forward": forward,
            "forward + backward": backward,
            "train step": step,
        }
    )
