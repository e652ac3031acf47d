"""An error of our own where XLA would fail deep inside."""

import tensorflow as tf


def refuse_xla(what: str) -> None:
    """Raises an error if a function with `jit_compile=True` is traced.

    The number of slots that a batch reads is not known before it is computed,
    as XLA requires of all shapes.

    Args:
        what: What cannot be compiled, the start of a sentence.
    """
    if _is_compiled_by_xla(tf.compat.v1.get_default_graph()):
        raise ValueError(
            f"{what} cannot be compiled by XLA. Received: a function, or a "
            "model, with jit_compile=True. Pass jit_compile=False, to "
            "`tf.function` or to the `compile` of the model."
        )


def _is_compiled_by_xla(graph: tf.Graph | None) -> bool:
    while graph is not None:
        context = graph._get_control_flow_context()
        while context is not None:
            if context.IsXLAContext():
                return True
            context = context.outer_context
        # Of a graph that is no function there is none.
        graph = getattr(graph, "outer_graph", None)
    return False
