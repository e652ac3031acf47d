"""The classes with memories, for each family of KerasHub.

KerasHub finds the task of a preset by the class of its backbone, so that each
family needs classes of its own. They differ in their bases alone, and are
therefore made here rather than written down. They are attributes of this
module, so that they can be pickled.
"""

import sys
from collections.abc import Iterator
from typing import Any

import keras
import keras_hub
from keras_hub.src.utils.preset_utils import KerasPresetLoader

from keras_pkm.layers.memories import memories
from keras_pkm.models.architecture import set_epsilon
from keras_pkm.models.decoding import DecodesWithTokenIds
from keras_pkm.models.memory_backbone import MemoryBackbone
from keras_pkm.models.question_answerer import QuestionAnswerer
from keras_pkm.trainers.task_training import TaskTraining

#: The families whose blocks can have memories.
FAMILIES: tuple[type[keras_hub.models.Backbone], ...] = (
    keras_hub.models.BertBackbone,
    keras_hub.models.BloomBackbone,
    keras_hub.models.DebertaV3Backbone,
    keras_hub.models.DistilBertBackbone,
    keras_hub.models.ESMBackbone,
    keras_hub.models.ElectraBackbone,
    keras_hub.models.FNetBackbone,
    keras_hub.models.FalconBackbone,
    keras_hub.models.GPT2Backbone,
    keras_hub.models.GPTNeoXBackbone,
    keras_hub.models.Gemma3Backbone,
    keras_hub.models.Gemma4Backbone,
    keras_hub.models.GemmaBackbone,
    keras_hub.models.GptOssBackbone,
    keras_hub.models.Llama3Backbone,
    keras_hub.models.LlamaBackbone,
    keras_hub.models.MistralBackbone,
    keras_hub.models.MixtralBackbone,
    keras_hub.models.OPTBackbone,
    keras_hub.models.PaliGemmaBackbone,
    keras_hub.models.Phi3Backbone,
    keras_hub.models.Qwen3Backbone,
    keras_hub.models.Qwen3MoeBackbone,
    keras_hub.models.Qwen3_5Backbone,
    keras_hub.models.Qwen3_5MoeBackbone,
    keras_hub.models.QwenBackbone,
    keras_hub.models.QwenMoeBackbone,
    keras_hub.models.RobertaBackbone,
    keras_hub.models.RoformerV2Backbone,
    keras_hub.models.SmolLM3Backbone,
    keras_hub.models.XLMRobertaBackbone,
)
#: The tasks that can have memories.
KINDS: tuple[type[keras_hub.models.Task], ...] = (
    keras_hub.models.CausalLM,
    keras_hub.models.MaskedLM,
    keras_hub.models.TextClassifier,
    QuestionAnswerer,
)
# By the plain class.
_made: dict[type, Any] = {}


class _MemoryTask(type):
    """The class of the classes of tasks with memories.

    Somebody may have saved the family's own task around a backbone with
    memories. KerasHub loads it with its head only if it counts as a subclass
    of the class that belongs to the backbone. Nobody else is told so: each of
    two classes would be among the other's subclasses, and a list of `presets`,
    which saving and loading make, too, would have no end.
    """

    plain_cls: type[keras_hub.models.Task]

    def __subclasscheck__(cls, subclass: type) -> bool:
        if subclass is cls.plain_cls:
            asks = sys._getframe(1).f_code
            if asks is KerasPresetLoader.load_task.__code__:
                return True
        return super().__subclasscheck__(subclass)


class _CheckpointsEpsilon(TaskTraining):
    """Masked-LM tasks, whose head has the epsilon of the backbone, if any.

    KerasHub always gives the layer norm of the head 1e-5.
    """

    masked_lm_head: keras.layers.Layer

    # `clone_model` would take a class with `*args` for a functional model.
    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        preprocessor: keras_hub.models.Preprocessor | None = None,
        **kwargs: Any,
    ):
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        epsilon = getattr(backbone, "normalization_epsilon", None)
        if epsilon is not None:
            set_epsilon(self.masked_lm_head, epsilon)


class _CausalLM(DecodesWithTokenIds, TaskTraining):
    """Causal language models, whose memories may need the ids of tokens."""

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        # On JAX, a model has no weights any more once a step has failed.
        _check_no_later_tokens(self)
        return super().fit(*args, **kwargs)

    def call(
        self, inputs: Any, training: bool | None = None, mask: Any = None
    ) -> Any:
        if training:
            _check_no_later_tokens(self)
        return super().call(inputs, training=training, mask=mask)


def _check_no_later_tokens(task: keras.Model) -> None:
    for memory in memories(task).values():
        for layer in memory._flatten_layers():
            is_batch_norm = isinstance(layer, keras.layers.BatchNormalization)
            if is_batch_norm and layer.trainable:
                raise ValueError(
                    "`query_normalization` must not be 'batch' in the memories "
                    "of a causal language model that is trained, because "
                    "statistics of a batch tell each token of later ones. "
                    f"Received: '{memory.name}', with the trainable layer "
                    f"'{layer.name}'. Pass `query_normalization='layer'`, or "
                    "freeze the queries: "
                    "`keras_pkm.models.freeze_memory(model, ['queries'])`."
                )


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

    It is a subclass of the plain task, trains under `tf.distribute`, and is
    what `from_preset` returns.

    Args:
        plain_cls: The class of its plain tasks, or that class itself.
    """
    # The base class of question answerers takes any backbone.
    if isinstance(plain_cls, _MemoryTask) or plain_cls.backbone_cls is None:
        return plain_cls
    members = {
        "__doc__": plain_cls.__doc__,
        "plain_cls": plain_cls,
        "backbone_cls": backbone_class(plain_cls.backbone_cls),
    }
    bases: tuple[type, ...]
    if issubclass(plain_cls, TaskTraining):
        bases = (plain_cls,)
    elif issubclass(plain_cls, keras_hub.models.MaskedLM):
        bases = (_CheckpointsEpsilon, plain_cls)
    elif issubclass(plain_cls, keras_hub.models.CausalLM):
        bases = (_CausalLM, plain_cls)
    else:
        bases = (TaskTraining, plain_cls)
    return _make(_MemoryTask, plain_cls, bases, members)


def plain_task_class(
    kind: type[keras_hub.models.Task],
    family: type[keras_hub.models.Backbone],
) -> type[keras_hub.models.Task]:
    """Returns the class of a family's plain tasks of a kind.

    Args:
        kind: One of `KINDS`.
        family: The class of its plain backbones.

    Raises:
        ValueError: it has no such task.
    """
    if found := find_task_class(kind, family):
        return found
    raise ValueError(
        f"`task` must be a kind of task that a `{family.__name__}` has. "
        f"Received: `{kind.__name__}`."
    )


def find_task_class(
    kind: type[keras_hub.models.Task], family: type[keras_hub.models.Backbone]
) -> type[keras_hub.models.Task] | None:
    """Returns what `plain_task_class` does, or `None` if there is none."""
    for plain_cls in _plain_classes_below(kind):
        if plain_cls.backbone_cls is family:
            return plain_cls
    return None


def register_families() -> None:
    """Makes the classes of all families known to Keras.

    Presets and files contain their names.
    """
    # Some families, such as ELECTRA, have no tasks.
    for family in FAMILIES:
        backbone_class(family)
    for kind in KINDS:
        for plain_cls in _plain_classes_below(kind):
            if plain_cls.backbone_cls in FAMILIES:
                task_class(plain_cls)


def _plain_classes_below(kind: type[Any]) -> list[type[Any]]:
    """KerasHub's own subclasses of a class, and ours without memories."""
    packages = ("keras_hub.", "keras_pkm.models.question_answerer")
    found = dict.fromkeys(_subclasses(kind))
    return [each for each in found if each.__module__.startswith(packages)]


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
        _made[plain_cls] = globals()[name] = register(made)
    return _made[plain_cls]


register_families()
