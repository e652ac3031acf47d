"""Gradients, which are sparse tensors for tables."""

from collections.abc import Sequence

import keras
import torch


def reduce_gradients(
    gradients: Sequence[torch.Tensor], of_tables: Sequence[bool], reduction: str
) -> list[torch.Tensor]:
    """Returns gradients in which tables have each row once.

    Args: see `keras_pkm.ops.backend.Backend.reduce_gradients`.
    """
    return [
        _to_rows(gradient) if of_table else _to_dense(gradient)
        for gradient, of_table in zip(gradients, of_tables)
    ]


def entries(gradient: torch.Tensor) -> torch.Tensor:
    """Returns the entries of a gradient; those of other rows are zero."""
    return gradient._values() if gradient.is_sparse else gradient


def with_entries(gradient: torch.Tensor, entries: torch.Tensor) -> torch.Tensor:
    """Returns a gradient with other entries in the same rows."""
    if not gradient.is_sparse:
        return entries
    return of_rows(gradient._indices()[0], entries, gradient.shape)


def keep_rows(gradient: torch.Tensor, kept: keras.Variable) -> torch.Tensor:
    """Sets rows of a table's gradient to zero.

    Args:
        gradient: A result of `reduce_gradients`.
        kept: bool variable of shape `(num_slots,)`: the rows to keep.
    """
    is_kept = kept.value[gradient._indices()[0]]
    return with_entries(
        gradient, torch.where(is_kept[:, None], gradient._values(), 0)
    )


def of_rows(
    rows: torch.Tensor, values: torch.Tensor, shape: Sequence[int]
) -> torch.Tensor:
    """Returns a sparse tensor with some rows.

    Args:
        rows: The numbers of the rows, ascending, each once.
        values: The rows.
        shape: The shape of the whole tensor.
    """
    return torch.sparse_coo_tensor(
        rows[None],
        values,
        tuple(shape),
        is_coalesced=True,
        check_invariants=False,
    )


def _to_rows(gradient: torch.Tensor) -> torch.Tensor:
    """The gradient of a table, with each row at most once."""
    if gradient.is_sparse:
        return gradient.coalesce()
    rows = (gradient != 0).any(dim=-1).nonzero()[:, 0]
    return of_rows(rows, gradient[rows], gradient.shape)


def _to_dense(gradient: torch.Tensor) -> torch.Tensor:
    return gradient.to_dense() if gradient.is_sparse else gradient
