"""What a traced function reads and makes, in all functions it calls."""

import tensorflow as tf


def tensors_with_rows(concrete_function, rows):
    """Outputs of ops, at any depth, whose first static dimension is `rows`."""
    found = []
    for graph in _graphs(concrete_function.graph):
        for op in graph.get_operations():
            for tensor in op.outputs:
                shape = tensor.shape
                if shape.rank and shape[0] == rows:
                    found.append(f"{op.type} {op.name} {shape}")
    return found


def _graphs(graph, seen=None):
    seen = set() if seen is None else seen
    yield graph
    for function in graph._functions.values():
        name = function.cached_definition.signature.name
        if name not in seen:
            seen.add(name)
            yield from _graphs(graph._get_function(name).graph, seen)


def library_shapes(concrete_function):
    """Static output shapes recorded in the library's node definitions."""
    return [
        (node.op, dim.size)
        for function in concrete_function.graph.as_graph_def().library.function
        for node in function.node_def
        for shape in node.attr["_output_shapes"].list.shape
        for dim in shape.dim[:1]
    ]


def op_types(concrete_function):
    """Types of all ops, at any depth."""
    return {
        op.type
        for graph in _graphs(concrete_function.graph)
        for op in graph.get_operations()
    }


__all__ = ["op_types", "tensors_with_rows", "tf"]
