"""The embedding bag: the gradient of its table is row-sparse."""

from collections.abc import Callable
from typing import Any

import keras
import torch
from keras import ops

from keras_pkm.ops.torch.row_gradients import of_rows


# torch's compiler has no sparse tensors.
@torch.compiler.disable
def embedding_bag(
    table: Any,
    slots: torch.Tensor,
    weights: torch.Tensor,
    implementation: str,
) -> torch.Tensor:
    """See `keras_pkm.ops.embedding_bag`."""
    values = ops.convert_to_tensor(
        table.value if isinstance(table, keras.Variable) else table
    )
    slots = ops.convert_to_tensor(slots)
    weights = ops.cast(weights, "float32")
    # The gradient of the weights is torch's own. That of the table would be as
    # large as all reads, or as the table.
    sums = torch.nn.functional.embedding_bag(
        slots, values.detach(), per_sample_weights=weights, mode="sum"
    )
    return _RowSparse.apply(sums, values, slots, weights.detach())


def search(
    find: Callable[[torch.Tensor, torch.Tensor], Any],
    queries: torch.Tensor,
    sub_keys: torch.Tensor,
    implementation: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns what `find` returns, with the gradients that torch derives."""
    return find(queries, sub_keys)


class _RowSparse(torch.autograd.Function):
    """Returns weighted sums as they are, and gives the table its gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        sums: torch.Tensor,
        table: torch.Tensor,
        slots: torch.Tensor,
        weights: torch.Tensor,
    ) -> torch.Tensor:
        ctx.save_for_backward(slots, weights)
        ctx.shape = table.shape
        return sums.view_as(sums)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: torch.Tensor) -> Any:
        of_table = None
        if ctx.needs_input_grad[1]:
            of_table = _table_gradient(
                ctx.shape, *ctx.saved_tensors, upstream.contiguous()
            )
        return upstream, of_table, None, None


@torch.compiler.disable
def _table_gradient(
    shape: tuple[int, ...],
    slots: torch.Tensor,
    weights: torch.Tensor,
    upstream: torch.Tensor,
) -> torch.Tensor:
    """The rows of `readsᵀ · upstream` that were read, each once.

    It is an embedding bag, too: each row is a bag of upstream gradients.
    """
    read, order = torch.sort(slots.reshape(-1), stable=True)
    rows, counts = torch.unique_consecutive(read, return_counts=True)
    if not len(rows):
        return of_rows(rows, upstream.new_zeros((0, shape[1])), shape)
    values = torch.nn.functional.embedding_bag(
        order // slots.shape[1],
        upstream,
        torch.cumsum(counts, 0) - counts,
        per_sample_weights=weights.reshape(-1)[order],
        mode="sum",
    )
    return of_rows(rows.to(torch.int64), values, shape)
