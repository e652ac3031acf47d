"""The largest number of facts that a model learns, by bisection."""

from training.studies.recall.trials import Trial

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
