"""Teaches a model with one method and several learning rates."""

import time

from keras_pkm.teaching.memory_teacher import MemoryTeacher
from training.studies.forgetting.candidates import CANDIDATES
from training.studies.forgetting.recipe import ForgettingRecipe
from training.studies.forgetting.settings import open_setting
from training.teaching.methods import make_teacher
from training.teaching.teach import teach


def try_candidate(recipe: ForgettingRecipe, key: str, seed: int) -> dict:
    """Teaches a model with one method, once with each learning rate."""
    candidate = CANDIDATES[key]
    tried = []
    with open_setting(recipe, seed) as setting:
        importance = None
        if candidate.method == "slots":
            importance = setting.measure_importance()
        for rate in candidate.rates(recipe):
            task = setting.load()
            teacher = make_teacher(
                task,
                candidate.method,
                learning_rate=rate,
                rule=candidate.rule,
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
    return {"candidate": key, "seed": seed, "tried": tried}
