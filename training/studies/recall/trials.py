"""Trials: one candidate each, with its facts, sizes, rates and seed."""

import dataclasses
import itertools

from training.studies.best_rate import GRID_SEED
from training.studies.recall.candidates import CANDIDATES
from training.studies.recall.candidates import Candidate
from training.studies.recall.recipe import RecallRecipe


@dataclasses.dataclass(frozen=True)
class Trial:
    """One training of one candidate."""

    # A key of `CANDIDATES`.
    key: str
    # Seed of the initial weights and of the order of the facts.
    seed: int
    # Number of random facts, or `None` for other facts.
    num_facts: int | None
    # Number of sub-keys for each half of a query.
    num_sub_keys: int
    # Two learning rates: of everything but the memory values, or the experts,
    # and of these. `None` for the best of the grid.
    rates: tuple[float, float] | None = None

    @property
    def candidate(self) -> Candidate:
        """The model."""
        return CANDIDATES[self.key]

    @property
    def model_name(self) -> str:
        """The name of the model, without facts, rates and seed."""
        if self.candidate.has_memory:
            return f"{self.key}-{self.num_sub_keys}-sub-keys"
        return self.key

    @property
    def name(self) -> str:
        """The base name of the trial's files."""
        parts = [self.key]
        if self.num_facts is not None:
            parts.append(f"{self.num_facts}-facts")
        if self.candidate.has_memory:
            parts.append(f"{self.num_sub_keys}-sub-keys")
        if self.rates is not None:
            parts.append(
                "rates-" + "-".join(f"{rate:g}" for rate in self.rates)
            )
        return "-".join([*parts, f"seed-{self.seed}"])


def grid_trials(recipe: RecallRecipe, key: str) -> list[Trial]:
    """Returns the trials for choosing a candidate's learning rates.

    There are none if there is only one pair of rates.
    """
    pairs = rate_pairs(recipe, key)
    if len(pairs) == 1:
        return []
    number, size = recipe.num_random_facts, recipe.num_sub_keys
    return [Trial(key, GRID_SEED, number, size, pair) for pair in pairs]


def rate_pairs(recipe: RecallRecipe, key: str) -> list[tuple[float, float]]:
    """Returns the pairs of learning rates to choose from for a candidate."""
    of_all, of_values = recipe.learning_rates, recipe.memory_learning_rates
    if CANDIDATES[key].experts:
        return [
            (rate, rate * factor)
            for rate, factor in itertools.product(of_all, recipe.expert_rates)
        ]
    if not CANDIDATES[key].has_memory:
        of_all = recipe.plain_learning_rates or of_all
        of_values = of_values[:1]
    return list(itertools.product(of_all, of_values))


def main_trials(recipe: RecallRecipe) -> list[Trial]:
    """Returns the trials of the comparison itself."""
    return [
        Trial(key, seed, recipe.num_random_facts, recipe.num_sub_keys)
        for seed in range(recipe.seeds)
        for key in recipe.candidates
    ]


def sweep_series(recipe: RecallRecipe) -> list[list[Trial]]:
    """Returns the trials of the sweep, one list for each model.

    Each list goes from few facts to many, all with the first seed. Some of the
    trials are also part of the main comparison.
    """
    if recipe.sweep == "none":
        return []
    models = [(key, recipe.num_sub_keys) for key in recipe.candidates]
    if "resm" in recipe.candidates:
        models += [("resm", size) for size in recipe.sweep_sub_keys]
    return [
        [Trial(key, 0, number, size) for number in sorted(recipe.sweep_facts)]
        for key, size in dict.fromkeys(models)
    ]


# The recall from which on a number of facts counts as learned.
LEARNED = 0.95


def name_of_series(series: list[Trial]) -> str:
    """Returns the name of the series of one model's trials."""
    numbers = "-".join(str(trial.num_facts) for trial in series)
    return f"{series[0].model_name}-{numbers}-facts"


def next_trial(
    series: list[Trial], recalls: dict[Trial, float], first: int | None
) -> Trial | None:
    """Returns the trial to make next, or `None` if there is nothing to find.

    It is the middle one of those between the largest number of facts that is
    known to be learned and the smallest one that is known not to be.
    """
    if not recalls and (begin := [t for t in series if t.num_facts == first]):
        return begin[0]
    learned = [_number(t) for t, recall in recalls.items() if recall >= LEARNED]
    missed = [_number(t) for t, recall in recalls.items() if recall < LEARNED]
    least = max(learned, default=0)
    most = min(missed, default=float("inf"))
    open_ = [trial for trial in series if least < _number(trial) < most]
    return open_[len(open_) // 2] if open_ else None


def _number(trial: Trial) -> int:
    """The number of facts, which all trials of a sweep have."""
    return trial.num_facts or 0
