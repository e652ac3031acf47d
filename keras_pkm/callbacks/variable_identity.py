"""Tells the variables of a model and its optimizer apart, in any process."""

import re
from collections.abc import Iterator
from typing import Any

import keras

# Keras' own lists of a layer's parts: these are in order, not by name.
_KERAS_OWN = frozenset(
    {
        "_functional",
        "_layers",
        "_metrics",
        "_non_trainable_variables",
        "_operations",
        "_operations_by_depth",
        "_seed_generators",
        "_self_unconditional_dependency_names",
        "_trainable_variables",
        "optimizer",
    }
)
_CONTAINERS = (list, tuple, dict)
_OWNERS = (keras.layers.Layer, keras.random.SeedGenerator)
_NUMBER = re.compile(r"_(\d+)$")


def identify_variables(model: keras.Model) -> dict[str, list[str]]:
    """Returns what tells each variable apart: place, shape and dtype.

    Keras numbers layers that have no name of their own through the whole
    process, as in `dense_7/kernel`. They are numbered here as if the process
    had made no other model, and the attribute that holds the variable is
    added: two such layers may have been made in another order.

    Args:
        model: A built model whose optimizer is built.

    Returns:
        A dict of lists of str: `"model"` and `"optimizer"`.
    """
    namer = _Namer(model)
    places = [namer.place_of(variable) for variable in model.variables]
    # Moments are named after the path of their variable, with underscores.
    references = {
        variable.path.replace("/", "_"): place
        for variable, place in zip(model.variables, places)
    }
    moments = []
    for variable in model.optimizer.variables:
        place = namer.place_of(variable)
        # The longest beginning of the name that is one.
        flat = variable.name.rpartition("_")[0]
        while flat and flat not in references:
            flat = flat.rpartition("_")[0]
        if flat:
            moment = variable.name.removeprefix(f"{flat}_")
            place = f"{place.split('/')[0]}/{moment} of {references[flat]}"
        moments.append(place)
    return {
        "model": _with_shapes(places, model.variables),
        "optimizer": _with_shapes(moments, model.optimizer.variables),
    }


def _with_shapes(
    places: list[str], variables: list[keras.Variable]
) -> list[str]:
    return [
        f"{place}, shape {tuple(variable.shape)}, {variable.dtype}"
        for place, variable in zip(places, variables, strict=True)
    ]


class _Namer:
    """Names variables without the numbers that Keras counts in a process."""

    def __init__(self, model: keras.Model):
        optimizer = model.optimizer
        named = [
            *model._flatten_layers(),
            optimizer,
            getattr(optimizer, "inner_optimizer", optimizer),
        ]
        self._given = {
            each.name
            for each in named
            if _prefix(each.name) != _snake_case(type(each).__name__)
        }
        self._attributes = _find_attributes(model)
        numbers: dict[str, set[int]] = {}
        for variable in [*model.variables, *optimizer.variables]:
            for part in self._numbered(variable.path):
                numbers.setdefault(_prefix(part), set()).add(_number(part))
        self._ranks = {
            prefix: sorted(of_prefix) for prefix, of_prefix in numbers.items()
        }

    def _numbered(self, path: str) -> list[str]:
        """The parts of a path that Keras numbers."""
        *scopes, name = path.split("/")
        # A scope that is no layer is that of another model, in which a layer
        # was built.
        numbered = [part for part in scopes if part not in self._given]
        return [*numbered, name] if _prefix(name) == "variable" else numbered

    def place_of(self, variable: keras.Variable) -> str:
        """Returns a variable's path, and its attribute if that says more."""
        place = self.rename(variable.path)
        attribute = self._attributes.get(id(variable))
        if attribute and self._numbered(variable.path):
            place += f" (self{attribute})"
        return place

    def rename(self, path: str) -> str:
        """Returns a path as in a process that made nothing else."""
        numbered = self._numbered(path)
        return "/".join(
            self._renumber(part) if part in numbered else part
            for part in path.split("/")
        )

    def _renumber(self, part: str) -> str:
        prefix = _prefix(part)
        ranks = self._ranks.get(prefix, [])
        rank = ranks.index(_number(part)) if _number(part) in ranks else 0
        return f"{prefix}_{rank}" if rank else prefix


def _prefix(name: str) -> str:
    return _NUMBER.sub("", name)


def _number(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found[1]) if found else -1


def _snake_case(name: str) -> str:
    """Converts the name of a class as Keras does."""
    name = re.sub(r"\W+", "", name)
    name = re.sub("(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()


def _find_attributes(model: keras.Model) -> dict[int, str]:
    """The attributes that lead to each variable, the shortest way."""
    ways = {id(model): ""}
    queue: list[Any] = [model]
    for thing in queue:
        for name, part in _parts(thing):
            if id(part) not in ways:
                ways[id(part)] = ways[id(thing)] + name
                queue.append(part)
    return ways


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, _OWNERS):
        found = [
            (f".{name}", part)
            for name, part in vars(thing).items()
            if name not in _KERAS_OWN
        ]
    elif isinstance(thing, dict):
        found = [(f"[{key!r}]", part) for key, part in thing.items()]
    elif isinstance(thing, _CONTAINERS):
        found = [(f"[{place}]", part) for place, part in enumerate(thing)]
    else:
        found = []
    for name, part in found:
        if isinstance(part, (*_OWNERS, *_CONTAINERS, keras.Variable)):
            yield name, part
