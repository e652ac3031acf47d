"""Teaches a model with one method and several learning rates."""

import time

from keras_pkm.teaching.memory_teacher import MemoryTeacher
from training.forgetting.contestants import CONTESTANTS
from training.forgetting.recipe import ForgettingRecipe
from training.forgetting.settings import open_setting
from training.teaching.methods import make_teacher
from training.teaching.teach import teach


def try_contestant(recipe: ForgettingRecipe, key: str, seed: int) -> dict:
    """Teaches a model with one method, once with each learning rate."""
    contestant = CONTESTANTS[key]
    tried = []
    with open_setting(recipe, seed) as setting:
        importance = None
        if contestant.method == "slots":
            importance = setting.measure_importance()
        for rate in contestant.rates(recipe):
            task = setting.load()
            teacher = make_teacher(
                task,
                contestant.method,
                learning_rate=rate,
                rule=contestant.rule,
                slots=recipe.slots,
                importance=importance,
                replayed=setting.old.samples(setting.batch_size, seed),
            )
            began = time.perf_counter()
            found = teach(
                task,
                teacher,
                new=setting.new,
                old=setting.old,
                steps=recipe.steps,
            )
            found["seconds"] = time.perf_counter() - began
            if isinstance(teacher, MemoryTeacher):
                found["rows"] = teacher.make_patch().num_rows
            tried.append({"rate": rate, **found})
    return {"contestant": key, "seed": seed, "tried": tried}
