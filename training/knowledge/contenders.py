"""The models that are compared."""

import dataclasses
import math
from typing import Literal

import keras
import keras_hub

from keras_pkm.layers.find_memories import find_memories
from keras_pkm.runs.user_error import UserError
from keras_pkm.trainers.freezing import freeze_pooler
from training.facts.fact_batches import Facts
from training.fitting.optimizer import make_optimizer
from training.knowledge.recipe import RecallRecipe
from training.loading.families import family_named

_TOKENS_STDDEV = 0.1
_STRONGER = ("value/kernel", "attention_output/kernel")
_ATTENTION_GAIN = 2.0
_FAMILIES = {"masked": "bert", "causal": "gpt2"}


@dataclasses.dataclass(frozen=True)
class Contender:
    """A model that learns facts.

    Attributes:
        title: What tables call it.
        block: Its layers with memory, `"ffn"` without any.
        widened_to: Whose parameters, or step time, the feed-forward networks
            are widened to; `None` to leave them as they are.
        starts_plain: Whether the first half of its time is spent without
            memory ("+Init").
    """

    title: str
    block: Literal["ffn", "pkm", "resm"]
    widened_to: Literal["parameters", "time"] | None = None
    starts_plain: bool = False

    @property
    def has_memory(self) -> bool:
        """Whether it has a memory."""
        return self.block != "ffn"


CONTENDERS = {
    "plain": Contender("plain", "ffn"),
    "wide-time": Contender(
        "plain, widened to ResM's step time", "ffn", widened_to="time"
    ),
    "wide-parameters": Contender(
        "plain, widened to ResM's parameters", "ffn", widened_to="parameters"
    ),
    "pkm": Contender("PKM", "pkm"),
    "resm": Contender("ResM", "resm"),
    "init-resm": Contender("ResM+Init", "resm", starts_plain=True),
}


def build_model(
    recipe: RecallRecipe,
    facts: Facts,
    *,
    block: Literal["ffn", "pkm", "resm"],
    intermediate_dim: int,
    num_sub_keys: int,
    seed: int,
) -> keras_hub.models.Task:
    """Builds a language model with fresh weights.

    Args:
        recipe: `RecallRecipe`.
        facts: What it is to learn.
        block: Its layers with memory, `"ffn"` without any.
        intermediate_dim: Width of the feed-forward networks.
        num_sub_keys: Sub-keys of each half of a memory.
        seed: Of the weights.
    """
    keras.utils.set_random_seed(seed)
    family = family_named(_FAMILIES[recipe.objective])
    model = family.make_task(
        {
            "vocabulary_size": facts.vocabulary_size,
            "num_layers": recipe.num_layers,
            "num_heads": recipe.num_heads,
            "hidden_dim": recipe.hidden_dim,
            "intermediate_dim": intermediate_dim,
            "dropout": 0.0,
            "max_sequence_length": facts.sequence_length,
        },
        memory_layers=() if block == "ffn" else recipe.memory_layers,
        memory_block=block,
        memory={
            "num_sub_keys": num_sub_keys,
            "num_heads": recipe.memory_heads,
            "top_k": recipe.memory_top_k,
            "key_dim": recipe.memory_key_dim,
        },
    )
    freeze_pooler(model.backbone)
    _draw_first_weights(model)
    return model


def check_sizes(recipe: RecallRecipe) -> None:
    """Builds a model with a memory, to see whether one can be built.

    Raises:
        UserError: the sizes do not fit together.
    """
    facts = recipe.open_facts()
    sizes = {recipe.num_sub_keys}
    if recipe.sweep == "facts":
        sizes |= set(recipe.sweep_sub_keys)
    try:
        for num_sub_keys in sizes:
            build_model(
                recipe,
                facts,
                block="resm",
                intermediate_dim=recipe.intermediate_dim,
                num_sub_keys=num_sub_keys,
                seed=0,
            )
    except ValueError as error:
        raise UserError(f"the sizes must fit together: {error}") from error


def _draw_first_weights(model: keras_hub.models.Task) -> None:
    """Draws first weights for a narrow model, in place of BERT's.

    BERT's deviation of 0.02 is made for a width of 768. In a narrow model so
    little of a name reaches the mask with it that nothing is learned for a
    long time. Here kernels are drawn as Keras draws them, and two signals are
    stronger: the tokens, beside positions and segments, which are the same in
    all examples; and what attention brings, which at first is the mean of all
    tokens of an example, and so a fraction of what there is at the mask.
    """
    width = model.backbone.hidden_dim
    memories = find_memories(model).values()
    of_memories = {id(v) for memory in memories for v in memory.variables}
    tokens = model.backbone.token_embedding.embeddings
    for variable in model.trainable_variables:
        if id(variable) in of_memories:
            continue
        # Initializers are fresh ones: called twice, they repeat themselves.
        if variable is tokens:
            draw = keras.initializers.RandomNormal(stddev=_TOKENS_STDDEV)
        elif variable.name == "embeddings":
            draw = keras.initializers.RandomUniform()
        elif variable.name == "kernel":
            draw = keras.initializers.GlorotUniform()
        else:
            continue
        # As matrices: those of attention have an axis for the heads, too.
        drawn = draw((width, math.prod(variable.shape) // width))
        if variable.path.endswith(_STRONGER):
            drawn *= _ATTENTION_GAIN
        variable.assign(keras.ops.reshape(drawn, variable.shape))


def compile_model(
    model: keras.Model,
    recipe: RecallRecipe,
    *,
    steps: int,
    rates: tuple[float, float],
) -> None:
    """Gives a model a fresh optimizer, with a schedule of `steps` steps.

    Args:
        model: As `build_model` has built it.
        recipe: `RecallRecipe`.
        steps: Steps of the schedule.
        rates: Learning rates of all but the memory values, and of these.
    """
    learning_rate, memory_learning_rate = rates
    model.compile(
        optimizer=make_optimizer(
            learning_rate=learning_rate,
            memory_learning_rate=memory_learning_rate,
            memory_schedule=recipe.memory_schedule,
            steps=steps,
            warmup_ratio=recipe.warmup_ratio,
            weight_decay=None,
            clip_norm=recipe.clip_norm,
            trains_values=bool(model.backbone.memory_outputs),
            scales_loss=False,
        ),
        weighted_metrics=[],
        # Off for all, so that their speeds compare.
        jit_compile=False,
    )


def width_of_as_many_parameters(
    recipe: RecallRecipe, plain: keras.Model, memory: keras.Model
) -> int:
    """Returns how wide a plain model must be to have a memory model's size.

    Args:
        recipe: `RecallRecipe`.
        plain: The plain model, whose networks have `recipe.intermediate_dim`.
        memory: The model with a memory.
    """
    missing = memory.count_params() - plain.count_params()
    # A unit has a weight from each input, a bias, and a weight to each output.
    of_a_unit = recipe.num_layers * (2 * recipe.hidden_dim + 1)
    return recipe.intermediate_dim + round(missing / of_a_unit)
