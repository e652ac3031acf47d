"""What a run takes over from its initial model."""

import dataclasses
import types

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import keras_pkm
from keras_pkm.files.presets import save_preset
from tests.any_backbone.tiny_families import inputs_of
from tests.any_backbone.tiny_families import outputs_of
from tests.training.finetuning.conftest import WORDS
from training.finetuning.recipe import FinetuningRecipe
from training.finetuning.seed import copy_backbone
from training.loading.families import family_named
from training.loading.pretrained_model import LanguageModel
from training.loading.pretrained_model import load_pretrained
from training.pretraining.initial_model import load_initial_model
from training.pretraining.initial_model import recipe_of_initial_model
from training.pretraining.recipe import RECIPES
from training.pretraining.stage import build_model
from training.pretraining.stages import plan_stages
from training.runs.run_directory import RunDirectory
from training.runs.user_error import UserError

SIZES = {
    "vocabulary_size": 50,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 32,
    "max_sequence_length": 64,
}
MEMORY = {"num_sub_keys": 8, "num_heads": 2, "top_k": 4, "key_dim": 8}
RECIPE = dataclasses.replace(
    RECIPES["laptop"], sequence_length=16, precision="float32"
)


def test_settings_of_a_gpt_neox():
    plain = keras_hub.models.GPTNeoXBackbone(
        **SIZES,
        rotary_percentage=1.0,
        rotary_max_wavelength=100,
        layer_norm_epsilon=0.1,
    )
    family = family_named("gpt_neox")
    start = family.of_keras_hub("CausalLM")(plain)
    initial = LanguageModel(start, family, None)
    recipe = dataclasses.replace(RECIPE, init_from="x", memory_layers=(1,))
    recipe = recipe_of_initial_model(recipe, initial)
    tokenizer = types.SimpleNamespace(vocabulary_size=lambda: 50)
    data = types.SimpleNamespace(family=family, tokenizer=tokenizer)
    (stage,) = plan_stages(recipe)
    model = build_model(
        recipe, data, tf.distribute.get_strategy(), stage, start
    )
    keras_pkm.models.copy_matching_weights(start, model)
    inputs = inputs_of(plain)
    for ours, theirs in zip(
        outputs_of(model.backbone, inputs), outputs_of(plain, inputs)
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("memory", "others", "message"),
    [
        ({"gate": True}, {}, "with gate False, received True"),
        ({"query_hidden_dims": (16,)}, {}, r"query_hidden_dims \[\], received"),
        ({}, {"share_table": True}, "a table each, received"),
    ],
)
def test_a_memory_with_settings_that_no_flag_has(memory, others, message):
    backbone = keras_hub.models.BertBackbone(**SIZES)
    task = keras_pkm.models.add_memory(
        keras_hub.models.BertMaskedLM(backbone),
        (1, 2),
        {**MEMORY, **memory},
        "resm",
        **others,
    )
    initial = LanguageModel(task, family_named("bert"), None)
    with pytest.raises(UserError, match=message):
        recipe_of_initial_model(RECIPE, initial)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"memory_block": "ffn"}, "--memory-block would do nothing.* to resm"),
        ({"num_sub_keys": 9}, "--num-sub-keys would do nothing.* to 8"),
        ({"plain_steps": 5}, "--plain-steps would do nothing.* to 0"),
        ({"num_layers": 12}, "--num-layers would do nothing.* to 2"),
        ({"backbone": "gpt2"}, "--backbone would do nothing.* to bert"),
        ({"num_layers": 2, "num_sub_keys": 8}, None),
    ],
)
def test_flags_that_the_model_decides(flags, message):
    backbone = keras_hub.models.BertBackbone(**SIZES)
    task = keras_pkm.models.add_memory(
        keras_hub.models.BertMaskedLM(backbone), (1,), MEMORY, "resm"
    )
    initial = LanguageModel(task, family_named("bert"), None)
    recipe = dataclasses.replace(RECIPE, init_from="x", **flags)
    if message is None:
        recipe_of_initial_model(recipe, initial)
        return
    with pytest.raises(UserError, match=message):
        recipe_of_initial_model(recipe, initial)


def test_networks_beside_a_memory_that_is_there_are_not_drawn():
    backbone = keras_hub.models.BertBackbone(**SIZES)
    task = keras_pkm.models.add_memory(
        keras_hub.models.BertMaskedLM(backbone), (1,), MEMORY, "resm"
    )
    initial = LanguageModel(task, family_named("bert"), None)
    recipe = dataclasses.replace(RECIPE, fresh_feed_forward=True, init_from="x")
    with pytest.raises(UserError, match="has its memory already"):
        recipe_of_initial_model(recipe, initial)


@pytest.mark.slow
def test_a_new_memory_is_drawn_with_the_seed(tmp_path):
    """And not when the model is loaded."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = keras_hub.models.BertTokenizer([*special, *WORDS])
    sizes = {**SIZES, "vocabulary_size": tokenizer.vocabulary_size()}
    task = keras_hub.models.BertMaskedLM(
        keras_hub.models.BertBackbone(**sizes),
        keras_hub.models.BertMaskedLMPreprocessor(tokenizer),
    )
    save_preset(task, task.preprocessor, tmp_path / "plain")
    recipe = FinetuningRecipe(
        task="sst2", model="x", out=tmp_path, precision="float32"
    )
    weights = []
    for loaded, seed in ((1, 7), (2, 7), (2, 8)):
        keras.utils.set_random_seed(loaded)
        added = {
            "memory_layers": (1,),
            "memory": MEMORY,
            "memory_block": "resm",
        }
        pretrained = load_pretrained(str(tmp_path / "plain"), added)
        keras.utils.set_random_seed(seed)
        copy = copy_backbone(recipe, pretrained)
        weights.append(
            {
                weight.path.removeprefix(f"{copy.name}/"): np.array(weight)
                for weight in copy.weights
            }
        )
    for path, weight in weights[0].items():
        np.testing.assert_array_equal(weight, weights[1][path], err_msg=path)
    (keys,) = (path for path in weights[0] if path.endswith("/sub_keys"))
    assert (weights[1][keys] != weights[2][keys]).any()
    values = keys.replace("sub_keys", "table/values")
    assert not weights[0][values].any()
    # Unless everything is drawn.
    recipe = dataclasses.replace(recipe, from_scratch=True)
    copy = copy_backbone(recipe, pretrained)
    for memory in keras_pkm.models.memories(copy).values():
        assert np.std(memory.table.values) > 0.1
    (words,) = (path for path in weights[0] if "token_embedding" in path)
    np.testing.assert_array_equal(weights[1][words], weights[2][words])


def test_a_run_in_its_plain_stage_is_no_start(tmp_path):
    run = RunDirectory(tmp_path)
    run.recipe.write_text('{"plain_steps": 9}')
    run.plain.mkdir()
    with pytest.raises(UserError, match="reached its last stage.*resume it"):
        load_initial_model(str(tmp_path), seed=0)
