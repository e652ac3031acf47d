"""Builds and compiles the models that are compared."""

import math

import keras
import keras_hub

from keras_pkm.layers.memories import memories
from keras_pkm.layers.ngram_memory import NGramMemory
from keras_pkm.layers.value_table import first_values
from keras_pkm.trainers.freezing import freeze_pooler
from training.facts.fact_batches import Facts
from training.fitting.optimizer import make_optimizer
from training.loading.families import family_named
from training.runs.user_error import UserError
from training.studies.recall.candidates import CANDIDATES
from training.studies.recall.mixture_of_experts import MixtureOfExperts
from training.studies.recall.mixture_of_experts import put_experts
from training.studies.recall.recipe import RecallRecipe

_TOKENS_STDDEV = 0.1
_STRONGER = ("value/kernel", "attention_output/kernel")
_ATTENTION_GAIN = 2.0
_FAMILIES = {"masked": "bert", "causal": "gpt2"}


def build_model(
    recipe: RecallRecipe,
    facts: Facts,
    key: str,
    *,
    seed: int,
    width: int | None = None,
    num_sub_keys: int | None = None,
    expert_rate: float = 1.0,
) -> keras_hub.models.Task:
    """Builds a candidate's language model with initial weights.

    Sizes that are not given are the recipe's. The learning rate of experts is
    `expert_rate` times that of all others.
    """
    candidate = CANDIDATES[key]
    width = width or recipe.intermediate_dim
    num_sub_keys = num_sub_keys or recipe.num_sub_keys
    layers = candidate.memory_layers or recipe.memory_layers
    keras.utils.set_random_seed(seed)
    family = family_named(_FAMILIES[recipe.objective])
    memory = {
        **recipe.memory_config(),
        "num_sub_keys": num_sub_keys,
        "values_initializer": first_values(),
        **candidate.memory,
    }
    if candidate.ngrams:
        hashed = NGramMemory(
            num_sub_keys**2,
            orders=candidate.ngrams,
            num_heads=candidate.ngram_heads or recipe.memory_heads,
            values_initializer=first_values(),
        )
        memory = keras.saving.serialize_keras_object(hashed)
    model = family.make_task(
        {
            "vocabulary_size": facts.vocabulary_size,
            "num_layers": recipe.num_layers * candidate.times_layers,
            "num_heads": recipe.num_heads,
            "hidden_dim": recipe.hidden_dim,
            "intermediate_dim": width,
            "dropout": 0.0,
            "max_sequence_length": facts.sequence_length,
        },
        memory_layers=layers if candidate.has_memory else (),
        memory_block=candidate.block,
        share_table=candidate.share_table,
        memory=memory,
    )
    if candidate.experts:
        # A unit has twice as many weights as a row of the table has values.
        units = recipe.num_sub_keys**2 // 2
        put_experts(
            model.backbone.transformer_layers[0],
            MixtureOfExperts(
                max(1, units // width),
                width,
                candidate.experts,
                expert_rate,
            ),
        )
    freeze_pooler(model.backbone)
    _draw_first_weights(model)
    return model


def check_sizes(recipe: RecallRecipe) -> None:
    """Builds a model with memory, to check that the sizes allow it."""
    facts = recipe.open_facts()
    sizes = {recipe.num_sub_keys}
    if recipe.sweep == "facts":
        sizes |= set(recipe.sweep_sub_keys)
    try:
        for size in sizes:
            build_model(recipe, facts, "resm", seed=0, num_sub_keys=size)
    except ValueError as error:
        raise UserError(f"the sizes must fit together: {error}") from error


def _draw_first_weights(model: keras_hub.models.Task) -> None:
    """Draws initial weights for a narrow model, instead of BERT's.

    BERT's standard deviation of 0.02 suits a width of 768. With it, narrow
    models learned next to nothing for a long time. Here kernels are drawn with
    Keras' defaults, and two signals are made stronger: the token embeddings,
    compared with positions and segments, which are the same in all examples;
    and the output of attention, which at first is the mean of all tokens, and
    so weak compared with the signal at the mask.
    """
    width = model.backbone.hidden_dim
    of_memories = {
        id(variable)
        for memory in memories(model).values()
        for variable in memory.variables
    }
    tokens = model.backbone.token_embedding.embeddings
    for variable in model.trainable_variables:
        if id(variable) in of_memories:
            continue
        # New initializers each time: one that is called twice repeats itself.
        if variable is tokens:
            draw = keras.initializers.RandomNormal(stddev=_TOKENS_STDDEV)
        elif variable.name == "embeddings":
            draw = keras.initializers.RandomUniform()
        elif variable.name == "kernel":
            draw = keras.initializers.GlorotUniform()
        else:
            continue
        # Drawn as matrices: attention kernels have a further axis for heads.
        drawn = draw((width, math.prod(variable.shape) // width))
        if variable.path.endswith(_STRONGER):
            drawn *= _ATTENTION_GAIN
        variable.assign(keras.ops.reshape(drawn, variable.shape))


def compile_model(
    model: keras.Model,
    recipe: RecallRecipe,
    key: str,
    *,
    steps: int,
    rates: tuple[float, float],
) -> None:
    """Compiles a candidate's model with a new optimizer, for some steps."""
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
            **CANDIDATES[key].optimizer,
        ),
        weighted_metrics=[],
        # Off for all models, so that their speeds are comparable.
        jit_compile=False,
    )


def width_of_as_many_parameters(
    recipe: RecallRecipe, plain: keras.Model, memory: keras.Model
) -> int:
    """Returns the width that makes a plain model as large as a memory model."""
    missing = memory.count_params() - plain.count_params()
    # A unit has one weight for each input, a bias, and one for each output.
    of_a_unit = recipe.num_layers * (2 * recipe.hidden_dim + 1)
    return recipe.intermediate_dim + round(missing / of_a_unit)
