"""Recipes: what a pretraining run consists of, as data.

The command line has one flag for each field, whose help is the comment above.
"""

import argparse
from typing import Annotated
from typing import Literal

import tyro
from pydantic import Field

from keras_pkm.layers import ProductKeyMemory
from keras_pkm.layers.memory_layers import check_memory_layers
from training.commands.fields import NO_MASKS
from training.commands.fields import Count
from training.commands.fields import Length
from training.commands.fields import Positive
from training.commands.fields import Rate
from training.commands.fields import Seed
from training.commands.fields import Share
from training.commands.fields import Whole
from training.commands.fields import check_data_dir
from training.commands.fields import check_fields
from training.commands.fields import check_unused
from training.commands.fields import out_of_range
from training.commands.recipe_groups import Machine
from training.commands.recipe_groups import MemorySizes
from training.commands.recipe_groups import ModelSizes
from training.commands.recipe_groups import Run
from training.commands.recipe_groups import Schedule
from training.commands.recipe_groups import Text
from training.commands.recipe_groups import recipe
from training.runs.user_error import UserError


@recipe
class PretrainingRecipe(Text, ModelSizes, MemorySizes, Schedule, Machine, Run):
    """Pretrain a language model with product-key memory on text.

    $ python training/pretrain.py --strategy mirrored
    $ python training/pretrain.py --text 'books/*.txt' --out runs/books
    $ python training/pretrain.py --backbone gpt2 --out runs/gpt2

    A run has one or two stages. With --plain-steps it first trains without
    memory, then adds memory to that model and continues ("+Init", section 3.3);
    otherwise it trains with memory from the start. Each stage has its own
    optimizer and its own schedule. Section numbers refer to Kim and Jung,
    "Large Product Key Memory for Pretrained Language Models" (2020).

    --verbose also shows the messages of TensorFlow.
    """

    # Named settings that give all other flags their defaults.
    recipe: str = "laptop"

    # --- Data ---

    # Text to train on: python-docs (English text that comes with Python), text
    # files or globs separated by commas, or tfds:NAME, whose split train is
    # read unless another one is named, as in tfds:NAME@test. Blank lines
    # separate documents.
    text: str = "python-docs"
    # Held-out text, like --text. Default: the share --held-out of the corpus.
    validation: str | None = None
    # Share of the corpus's documents that is held out without --validation.
    held_out: Share = 0.05
    # Run directory whose packed text and vocabulary this run uses, too, so that
    # the text is neither packed again nor stored twice on the same disk.
    data_from: str | None = None
    # Vocabulary: a WordPiece file with one token on each line, or, for RoBERTa
    # and causal models, a JSON file with merges.txt beside it. Default: a
    # vocabulary is trained on the corpus.
    vocabulary: str | None = None
    # Size of the vocabulary to train.
    vocabulary_size: Annotated[Count, Field(ge=6)] = 8000
    # Tokens of an input, special ones such as [CLS] included.
    sequence_length: Length = 128

    # --- Model ---

    # Predict masked tokens (masked) or the next token (causal). Default: the
    # objective of --backbone.
    objective: Literal["masked", "causal"] | None = None
    # Kind of model. gpt2, gpt_neox and opt are causal; the others are masked
    # language models.
    backbone: Literal[
        "bert", "distilbert", "roberta", "gpt2", "gpt_neox", "opt"
    ] = "bert"
    # Dropout of the layers.
    dropout: Rate = 0.1

    # --- Memory ---

    # resm adds the memory beside the feed-forward network, pkm replaces that
    # network, ffn is the plain model (section 3.2), and serial adds the memory
    # behind the layer. In causal models, resm adds it behind the layer, too,
    # and pkm and serial are not available.
    memory_block: Literal["resm", "pkm", "ffn", "serial"] = "resm"
    # Layers with a memory, counted from 1 (section 4.1).
    memory_layers: tuple[int, ...] = (4, 8)
    # Width of the values. Default: the width of the layers.
    memory_value_dim: Count | None = None
    # Normalization of the queries. Default: batch (section 3.1), or layer for
    # causal models, because batch statistics would reveal later tokens.
    query_normalization: Literal["batch", "layer", "none"] | None = None
    # Dropout of the queries.
    query_dropout: Rate = 0.0
    # Dropout of the memory's output.
    value_dropout: Rate = 0.0

    # --- Schedule ---

    # Steps without memory before --steps with it: "+Init" (section 3.3), or
    # with --memory-block ffn, the paper's baseline that trains longer.
    plain_steps: Whole = 0
    # Start from a model instead of --plain-steps: a run directory, a preset or
    # a local directory of transformers. It sets the kind and the sizes of the
    # model, and the vocabulary.
    init_from: str | None = None
    # Draw new weights for the feed-forward networks beside a memory when the
    # memory is added (ResM', figure 3).
    fresh_feed_forward: bool = False
    # Steps of the stage with memory (section 4.1).
    steps: Count = 500_000
    batch_size: Count = 1024
    # Number of batches whose gradients are averaged for one step, which needs
    # no more device memory than one batch. Batch norm of the queries uses the
    # statistics of each batch.
    accumulate: Count = 1
    # Peak learning rate of all but the memory values (section 4.1).
    learning_rate: Share = 1e-4
    # Learning rate of the memory values (section 4.1). A model that trains for
    # a few thousand steps stores far more facts with 1e-2 or 3e-2 than with the
    # paper's rate of 1e-3.
    memory_learning_rate: Share = 1e-3
    # Schedule of --memory-learning-rate: constant, as in the paper; or linear,
    # where it is a peak, with the warm-up and decay of --learning-rate.
    memory_schedule: Literal["constant", "linear"] = "constant"
    warmup_ratio: Rate = 0.02
    # Decoupled weight decay; excludes memory values, biases and norms.
    weight_decay: Rate = 0.0
    clip_norm: Positive | None = None
    # What devices send to sum the gradients of memory values: the rows that
    # they have read (sparse), or the whole table (dense).
    reduction: Literal["sparse", "dense"] = "sparse"

    # --- Machine and run ---

    # Number of checkpoints to keep, the newest ones.
    keep_checkpoints: Count = 2
    # Steps between evaluations; must divide the steps of each stage. Default:
    # up to five evaluations in each stage.
    evaluate_every: Count | None = None
    # Seed of the initial weights, dropout, data order and training masks. The
    # held-out text and its masks are the same for all seeds.
    seed: Seed = 0

    def skipped_weights(self) -> str | None:
        """Returns the pattern of weights that "+Init" leaves out."""
        if not self.fresh_feed_forward:
            return None
        layers = "|".join(str(layer - 1) for layer in self.memory_layers)
        return (
            rf"(^|/)transformer_layer_({layers})/"
            "feedforward_(intermediate|output)_dense/"
        )

    def memory_config(self) -> dict:
        """Returns the arguments of `keras_pkm.layers.ProductKeyMemory`."""
        normalization = self.query_normalization or "batch"
        return {
            **super().memory_config(),
            "value_dim": self.memory_value_dim,
            "query_normalization": (
                None if normalization == "none" else normalization
            ),
            "query_dropout": self.query_dropout,
            "value_dropout": self.value_dropout,
        }


RECIPES = {
    recipe.recipe: recipe
    for recipe in (
        PretrainingRecipe(
            recipe="laptop",
            vocabulary_size=2000,
            sequence_length=32,
            num_layers=3,
            hidden_dim=128,
            num_heads=4,
            intermediate_dim=512,
            dropout=0.0,
            memory_layers=(1, 2),
            num_sub_keys=16,
            memory_heads=2,
            memory_top_k=8,
            memory_key_dim=32,
            plain_steps=900,
            steps=600,
            batch_size=64,
            learning_rate=2e-3,
            warmup_ratio=0.1,
            # At this rate, training does not get off the ground without it.
            clip_norm=1.0,
        ),
        # Sections 3.3 and 4.1.
        PretrainingRecipe(recipe="paper-base", plain_steps=500_000),
        PretrainingRecipe(
            recipe="paper-large",
            num_layers=24,
            hidden_dim=1024,
            num_heads=16,
            intermediate_dim=4096,
            memory_layers=(8, 16),
            plain_steps=500_000,
        ),
        # Table 7.
        PretrainingRecipe(
            recipe="paper-distilbert",
            backbone="distilbert",
            num_layers=6,
            memory_layers=(2, 4),
            init_from="distil_bert_base_en_uncased",
        ),
    )
}


def parse_recipe(args: list[str] | None) -> PretrainingRecipe:
    """Returns the named recipe with the changes that other flags make."""
    name = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    name.add_argument("--recipe", choices=RECIPES, default="laptop")
    known, _ = name.parse_known_args(args)
    return tyro.cli(PretrainingRecipe, args=args, default=RECIPES[known.recipe])


def check_recipe(recipe: PretrainingRecipe, replicas: int = 1) -> None:
    """Checks the numbers of a recipe."""
    check_fields(recipe)
    if recipe.hidden_dim % recipe.num_heads:
        rule = f"a divisor of --hidden-dim, {recipe.hidden_dim}"
        raise out_of_range(recipe, "num_heads", rule)
    if recipe.objective == "causal" and recipe.memory_block not in (
        "resm",
        "ffn",
    ):
        raise out_of_range(
            recipe, "memory_block", f"resm or ffn with {recipe.backbone}"
        )
    if recipe.memory_block != "ffn":
        try:
            ProductKeyMemory(**recipe.memory_config())
            check_memory_layers(recipe.memory_layers, recipe.num_layers)
        except ValueError as error:
            raise UserError(f"the memory cannot be built: {error}") from error
        if not recipe.memory_layers:
            raise UserError(
                "--memory-layers must name a layer, received none: pass "
                "--memory-block ffn for a model without memory"
            )
    if recipe.batch_size % replicas:
        raise out_of_range(
            recipe, "batch_size", f"a multiple of the {replicas} devices"
        )
    every = recipe.evaluate_every
    if every is not None:
        stages = [s for s in (recipe.plain_steps, recipe.steps) if s]
        if every < 1 or any(steps % every for steps in stages):
            raise out_of_range(
                recipe,
                "evaluate_every",
                f"a divisor of {' and '.join(map(str, stages))}, the steps of "
                "each stage",
            )


def check_flags(recipe: PretrainingRecipe) -> None:
    """Checks that a new run has no flags that do nothing, or harm."""
    default = RECIPES[recipe.recipe]
    if recipe.objective == "causal":
        check_unused(recipe, ("mask_rate",), NO_MASKS, default)
        if recipe.query_normalization == "batch":
            raise out_of_range(
                recipe,
                "query_normalization",
                f"layer or none with --backbone {recipe.backbone}",
            )
    adds_memory = recipe.memory_block == "resm" and (
        recipe.plain_steps or recipe.init_from
    )
    if not adds_memory or recipe.objective == "causal":
        reason = (
            "no memory is added beside trained feed-forward networks, as "
            "--plain-steps or --init-from do with --memory-block resm in an "
            "encoder"
        )
        check_unused(recipe, ("fresh_feed_forward",), reason, default)
    if recipe.data_from is None:
        check_data_dir(recipe, recipe.text, recipe.validation)
    if recipe.vocabulary is not None:
        reason = "--vocabulary has a size of its own"
        check_unused(recipe, ("vocabulary_size",), reason, default)
    if recipe.validation is not None:
        reason = "--validation is held out"
        check_unused(recipe, ("held_out",), reason, default)
