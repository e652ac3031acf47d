"""Of each family of KerasHub the classes with memories.

KerasHub finds the task of a preset by the class of its backbone, so that each
family needs classes of its own. They differ in their bases alone, and are
therefore made here rather than written down.
"""

from collections.abc import Iterator
from typing import Any

import keras
import keras_hub

from keras_pkm.any_backbone.memory_backbone import MemoryBackbone
from keras_pkm.trainers.distributed_training import DistributedTraining

#: The tasks that can have memories.
KINDS = (
    keras_hub.models.CausalLM,
    keras_hub.models.MaskedLM,
    keras_hub.models.TextClassifier,
)
# By the plain class.
_made: dict[type, Any] = {}


class _MemoryTask(type):
    """The class of the classes of tasks with memories.

    Somebody may have saved the family's own task around a backbone with
    memories. KerasHub loads it with its head only if it counts as a subclass
    of the class that belongs to the backbone.
    """

    plain_cls: type[keras_hub.models.Task]

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls.plain_cls or super().__subclasscheck__(subclass)


def backbone_class(
    plain_cls: type[keras_hub.models.Backbone],
) -> type[MemoryBackbone]:
    """Returns the class of a family's backbones with memories.

    Args:
        plain_cls: The class of its plain backbones.
    """
    members = {"__doc__": MemoryBackbone.__doc__, "plain_cls": plain_cls}
    return _make(type, plain_cls, (MemoryBackbone,), members)


def task_class(plain_cls: Any) -> type[keras_hub.models.Task]:
    """Returns the class of a family's tasks around backbones with memories.

    It is a subclass of the plain task, trains as the tasks of
    `keras_pkm.models` do, and is what `from_preset` returns.

    Args:
        plain_cls: The class of its plain tasks.
    """
    members = {
        "__doc__": plain_cls.__doc__,
        "plain_cls": plain_cls,
        "backbone_cls": backbone_class(plain_cls.backbone_cls),
    }
    bases = (DistributedTraining, plain_cls)
    return _make(_MemoryTask, plain_cls, bases, members)


def register_families() -> None:
    """Makes the classes of all families of KerasHub known to Keras.

    Presets and files contain their names.
    """
    # Some families, such as ELECTRA, have no tasks.
    for plain_cls in _hub_classes_below(keras_hub.models.Backbone):
        backbone_class(plain_cls)
    for kind in KINDS:
        for plain_cls in _hub_classes_below(kind):
            if plain_cls.backbone_cls is not None:
                task_class(plain_cls)


def _hub_classes_below(cls: type[Any]) -> set[type[Any]]:
    """The subclasses of a class that KerasHub itself defines."""
    found = set(_subclasses(cls))
    return {each for each in found if each.__module__.startswith("keras_hub.")}


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def _make(
    metaclass: type,
    plain_cls: type,
    bases: tuple[type, ...],
    members: dict[str, Any],
) -> Any:
    """A class, which is made at the first call."""
    if plain_cls not in _made:
        name = f"Memory{plain_cls.__name__}"
        made = metaclass(name, bases, {"__module__": __name__, **members})
        register = keras.saving.register_keras_serializable("keras_pkm")
        _made[plain_cls] = register(made)
    return _made[plain_cls]
