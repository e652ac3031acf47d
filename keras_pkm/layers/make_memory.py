"""Makes memories after a template."""

from typing import Any
from typing import TypeAlias

import keras

from keras_pkm.layers.memory import Memory
from keras_pkm.layers.product_key_memory import ProductKeyMemory
from keras_pkm.ops.arguments import plain_values

#: How the memories of a model are described: a memory; its config, as
#: `keras.saving.serialize_keras_object` returns it; or arguments of
#: `ProductKeyMemory`.
MemoryTemplate: TypeAlias = Memory | dict[str, Any] | None

# What arguments may be besides what JSON knows. (A table may be shared, and
# copies would not be.)
_SERIALIZED = (
    keras.Initializer,
    keras.Regularizer,
    keras.constraints.Constraint,
    keras.DTypePolicy,
)


def make_memory(
    template: MemoryTemplate,
    dtype: str | keras.DTypePolicy,
    reads_zero: bool = False,
    **defaults: Any,
) -> Memory:
    """Makes a memory with weights of its own, named "memory".

    Args:
        template: A memory, its config, or arguments of `ProductKeyMemory`.
        dtype: The dtype policy of the new memory.
        reads_zero: Whether the values are zero at first, so that a model to
            which the memory is added computes what it did before. A
            `values_initializer` in the template wins.
        **defaults: Arguments of `ProductKeyMemory`, for templates that are
            arguments and lack them.

    Raises:
        ValueError: the template is something else.
    """
    config = memory_config(template)
    is_complete = "class_name" in config
    arguments = {**config["config"]} if is_complete else {**defaults, **config}
    arguments |= {"name": "memory", "dtype": dtype}
    if reads_zero and arguments.get("values_initializer") is None:
        arguments["values_initializer"] = "zeros"
    if not is_complete:
        return ProductKeyMemory(**arguments)
    memory = keras.saving.deserialize_keras_object(
        {**config, "config": arguments}
    )
    if not isinstance(memory, Memory):
        raise ValueError(
            "`memory` must be the config of a `keras_pkm.layers.Memory`. "
            f"Received: that of a `{type(memory).__name__}`."
        )
    return memory


def template_for(template: MemoryTemplate, tokenizer: Any) -> MemoryTemplate:
    """Returns a template for the memories of a model with a tokenizer.

    Args:
        template: A memory, its config, or arguments of `ProductKeyMemory`.
        tokenizer: `keras_hub.tokenizers.Tokenizer`, or `None`.
    """
    memory: Any = template
    if isinstance(template, dict) and "class_name" in template:
        memory = keras.saving.deserialize_keras_object(template)
    return (
        memory.suited_to(tokenizer) if isinstance(memory, Memory) else template
    )


def memory_config(template: MemoryTemplate) -> dict[str, Any]:
    """Returns a template as a dict that JSON accepts.

    Raises:
        ValueError: it is no template.
    """
    if isinstance(template, Memory):
        template = keras.saving.serialize_keras_object(template)
    if template is not None and not isinstance(template, dict):
        raise ValueError(
            "`memory` must be a memory, the config of one, or a dict of "
            "arguments of `keras_pkm.layers.ProductKeyMemory`. Received: "
            f"memory={template!r}."
        )
    config = {
        name: keras.saving.serialize_keras_object(value)
        if isinstance(value, _SERIALIZED)
        else value
        for name, value in plain_values(template).items()
    }
    # Copies are other objects, and are built when they know their inputs.
    for of_the_object in ("build_config", "shared_object_id"):
        config.pop(of_the_object, None)
    if "class_name" in config and not isinstance(config.get("config"), dict):
        raise ValueError(
            "`memory` must have a dict `config` beside its `class_name`, as "
            "`keras.saving.serialize_keras_object` returns it. Received: "
            f"memory={config!r}."
        )
    return config
