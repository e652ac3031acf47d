"""What the ops of a traced function make, in all functions that it calls."""


def tensors_with_rows(graph, rows):
    """Outputs of ops, at any depth, whose first static dimension is `rows`."""
    return [
        f"{op.type} {op.name} {tensor.shape}"
        for part in _graphs(graph)
        for op in part.get_operations()
        for tensor in op.outputs
        if tensor.shape.rank and tensor.shape[0] == rows
    ]


def _graphs(graph, seen=None):
    """The graph, and those of its function library, each once."""
    seen = set() if seen is None else seen
    yield graph
    for function in graph._functions.values():
        name = function.cached_definition.signature.name
        if name not in seen:
            seen.add(name)
            yield from _graphs(graph._get_function(name).graph, seen)
