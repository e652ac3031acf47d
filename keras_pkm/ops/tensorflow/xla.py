"""Raises a clear error where XLA would fail with an obscure one."""

import tensorflow as tf


def refuse_xla(what: str) -> None:
    """Raises an error if a function with `jit_compile=True` is traced.

    XLA requires all shapes to be known at compile time. The number of slots
    that a batch reads is not.

    Args:
        what: The subject of the message: what cannot be compiled.
    """
    if is_compiled_by_xla():
        raise ValueError(
            f"{what} cannot be compiled by XLA. Received: a function, or a "
            "model, with jit_compile=True. Pass jit_compile=False, to "
            "`tf.function` or to the `compile` of the model."
        )


def is_compiled_by_xla() -> bool:
    """Whether a function with `jit_compile=True` is being traced."""
    graph = tf.compat.v1.get_default_graph()
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        # Only the graph of a function has an outer graph.
        graph = getattr(graph, "outer_graph", None)
    return False
