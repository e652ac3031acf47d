"""Measures the step time of each candidate, in turn."""

import dataclasses
import statistics
import time

import keras
from tqdm import tqdm

from training.facts.fact_batches import training_batches
from training.studies.recall.candidates import CANDIDATES
from training.studies.recall.models import build_model
from training.studies.recall.models import compile_model
from training.studies.recall.models import width_of_as_many_parameters
from training.studies.recall.recipe import RecallRecipe
from training.studies.recall.trials import Trial
from training.studies.recall.trials import rate_pairs

# The first steps of a turn are for tracing and warm-up; they are not timed.
_WARM_UP = 3
_TIMED = 12
_TURNS = 4
# Maximum number of widths that are tried.
_GUESSES = 3
_CLOSE = 0.03
_WIDEST = 16
_MULTIPLE = 8


@dataclasses.dataclass(frozen=True)
class StepTimes:
    """Widths of all candidates, and the times of their steps."""

    # Widths of widened feed-forward networks, by the candidate's key.
    widths: dict[str, int]
    # Step times in seconds, by the candidate's key; for candidates with memory,
    # by key and number of sub-keys.
    seconds: dict[str, float]

    def as_json(self) -> dict:
        """Returns the widths and times, serializable as JSON."""
        return dataclasses.asdict(self)

    def width(self, recipe: RecallRecipe, key: str) -> int:
        """Returns the width of a candidate's feed-forward networks."""
        return self.widths.get(key, recipe.intermediate_dim)

    def stages(
        self, recipe: RecallRecipe, trial: Trial
    ) -> list[tuple[str, int, float]]:
        """Returns the one or two stages in which a candidate trains.

        Each is a tuple of the candidate as which it trains, its number of
        steps, and its step time.
        """
        keys = trial.candidate.trained_as or (trial.key,)
        stages = []
        for key in keys:
            seconds = self.seconds[_key(key, trial.num_sub_keys)]
            given = recipe.steps_for(trial.num_facts)
            steps = given or recipe.seconds / seconds
            stages.append((key, max(1, round(steps / len(keys))), seconds))
        return stages


def measure_step_times(recipe: RecallRecipe) -> StepTimes:
    """Measures all candidates in turn, and finds the widths of widened ones."""
    timer = _Timer(recipe)
    base = recipe.intermediate_dim
    # Others are compared with the first two, and widened to the second.
    for key in dict.fromkeys(("plain", "resm", *recipe.candidates)):
        if not (CANDIDATES[key].trained_as or key.startswith("wide-")):
            timer.add(key)
    resm = _key("resm", recipe.num_sub_keys)
    widths = {}
    if "wide-parameters" in recipe.candidates:
        widths["wide-parameters"] = width_of_as_many_parameters(
            recipe, timer.models["plain"], timer.models[resm]
        )
        timer.add("wide-parameters", widths["wide-parameters"])
    if "wide-time" in recipe.candidates:
        widths["wide-time"] = _width_of_as_much_time(timer, base, resm)
    return StepTimes(widths, timer.measure(list(timer.models), _TURNS))


def measure_table_times(recipe: RecallRecipe, times: StepTimes) -> StepTimes:
    """Measures ResM with the tables of a sweep, in turn."""
    timer = _Timer(recipe)
    for size in sorted({recipe.num_sub_keys, *recipe.sweep_sub_keys}):
        timer.add("resm", num_sub_keys=size)
    found = timer.measure(list(timer.models), _TURNS)
    resm = _key("resm", recipe.num_sub_keys)
    scale = times.seconds[resm] / found[resm]
    others = {key: scale * seconds for key, seconds in found.items()}
    return StepTimes(times.widths, {**others, **times.seconds})


def _key(key: str, num_sub_keys: int) -> str:
    """The name of a candidate's step time."""
    return f"{key}-{num_sub_keys}" if CANDIDATES[key].has_memory else key


def _width_of_as_much_time(timer: "_Timer", base: int, resm: str) -> int:
    """Widens a plain model until its steps take as long as ResM's."""
    width = 4 * base
    timer.add("wide-time", width)
    for _ in range(_GUESSES):
        found = timer.measure(["plain", "wide-time", resm], _TURNS)
        if abs(found["wide-time"] / found[resm] - 1) < _CLOSE:
            break
        # Linear extrapolation.
        of_a_unit = (found["wide-time"] - found["plain"]) / (width - base)
        missing = found[resm] - found["plain"]
        units = max(0.0, missing / of_a_unit) if of_a_unit > 0 else 0.0
        # A limit, because the times of tiny models are mostly noise.
        units = min(units, _WIDEST * base)
        width = base + max(1, round(units / _MULTIPLE)) * _MULTIPLE
        timer.add("wide-time", width)
    return width


class _Timer:
    """Models whose steps are timed in turn."""

    def __init__(self, recipe: RecallRecipe):
        self.models: dict[str, keras.Model] = {}
        self._recipe = recipe
        self._facts = recipe.open_facts()

    def add(
        self,
        key: str,
        width: int | None = None,
        num_sub_keys: int | None = None,
    ) -> None:
        recipe, size = self._recipe, num_sub_keys or self._recipe.num_sub_keys
        model = build_model(
            recipe, self._facts, key, seed=0, width=width, num_sub_keys=size
        )
        rates = rate_pairs(recipe, "resm")[0]
        compile_model(model, recipe, key, steps=_TIMED, rates=rates)
        self.models[_key(key, size)] = model

    def measure(self, keys: list[str], turns: int) -> dict[str, float]:
        """Returns the median step time in seconds, by key."""
        found: dict[str, list[float]] = {key: [] for key in keys}
        for turn in tqdm(range(turns), "Step times", leave=False, disable=None):
            for key in keys:
                found[key] += self._time_steps(self.models[key], turn)
        return {key: statistics.median(each) for key, each in found.items()}

    def _time_steps(self, model: keras.Model, turn: int) -> list[float]:
        ends = []
        end = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: ends.append(
                time.perf_counter()
            )
        )
        batches = training_batches(
            self._facts,
            batch_size=self._recipe.batch_size,
            seed=turn,
            first_step=0,
            num_steps=_WARM_UP + _TIMED,
        )
        model.fit(batches, callbacks=[end], shuffle=False, verbose=0)
        ends = ends[_WARM_UP - 1 :]
        return [after - before for before, after in zip(ends, ends[1:])]
