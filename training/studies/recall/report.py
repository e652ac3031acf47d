"""The report on recall: tables and plots."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from training.reports.knowledge_plots import plot_capacity
from training.reports.knowledge_plots import plot_recall
from training.studies.recall.candidates import CANDIDATES
from training.studies.recall.recipe import RecallRecipe
from training.studies.recall.trials import LEARNED
from training.studies.report import Report
from training.studies.report import Table
from training.studies.report import over_seeds


def make_report(recipe: RecallRecipe, findings: dict) -> Report:
    """Returns the report on the findings."""
    return Report(
        "How many facts models know",
        [_summary(recipe, findings)],
        make_tables(findings),
        _draw(findings),
    )


def _summary(recipe: RecallRecipe, findings: dict) -> str:
    number = next(iter(findings["candidates"].values()))["seeds"][0]["facts"]
    what = (
        f"{number:,} random facts with one of {recipe.values:,} values each"
        if recipe.has_random_facts
        else f"the {number:,} facts of {recipe.facts}"
    )
    long = f"{recipe.seconds:,.0f} seconds"
    if recipe.steps:
        long = f"{recipe.steps:,} steps"
    if recipe.exposures:
        long = f"{recipe.exposures:,} exposures of each fact"
    if recipe.synonyms > 1:
        what += (
            f", whose subjects have three words with {recipe.synonyms} "
            "synonyms each, drawn anew each time, and are asked for in words "
            "of which no two were trained together,"
        )
    chance = (
        f" A guess is right in {100 / recipe.values:.2g} %."
        if recipe.has_random_facts
        else ""
    )
    kinds = {
        "masked": "BERTs",
        "causal": "GPT-2s, whose memories stand behind the layers,",
    }
    return (
        f"{kinds[recipe.objective]} were trained on {what} for {long} each, "
        f"{recipe.batch_size:,} facts a batch.{chance} Seeds: {recipe.seeds}."
    )


def make_tables(findings: dict) -> list[Table]:
    """Returns the tables of the report."""
    candidates = findings["candidates"]
    tables = [_models(candidates)]
    if any(
        _reached(seed["curve"])
        for found in candidates.values()
        for seed in found["seeds"]
    ):
        tables.append(_speeds(candidates))
    if any("ablated" in found["seeds"][0] for found in candidates.values()):
        tables.append(_ablated(candidates))
    # Older trials have none, and facts that are text no bits.
    if any(
        found["seeds"][0].get("int8", {}).get("bits")
        for found in candidates.values()
    ):
        tables.append(_rounded(candidates))
    if findings["sweep"]:
        tables += _sweep(findings["sweep"], findings["num_sub_keys"])
    if any(found["grid"] for found in candidates.values()):
        tables.append(_grid(candidates))
    return tables


def _models(candidates: dict[str, dict]) -> Table:
    rows = []
    for key, found in candidates.items():
        recalls = [100 * seed["recall"] for seed in found["seeds"]]
        bits, moments = found["bits"], found["optimizer_bytes"]
        rows.append(
            [
                found["title"],
                f"{found['parameters']:,}",
                "-" if moments is None else f"{moments / 2**20:.1f}",
                f"{found['width']:,}",
                ", ".join(f"{each:.0f}" for each in found["milliseconds"]),
                f"{found['steps']:,}",
                f"{found['exposures']:.1f}",
                _rates(key, found["rates"]),
                over_seeds(recalls),
                "-" if bits is None else f"{max(0.0, bits):,.0f}",
                "-"
                if bits is None
                else f"{max(0.0, bits) / found['parameters']:.2f}",
            ]
        )
    return Table(
        "What each model knows",
        "Times of a step are those of a model alone, all measured in turn. "
        "Exposures are how often each fact was seen. Rates are those of all "
        "but the memory values, or experts, and of these. Recall is the share "
        "of the facts whose value is predicted; bits known are facts × (log2 "
        "values − cross entropy in bits), and at least zero.",
        [
            *("model", "parameters", "optimizer MiB", "width", "ms a step"),
            *("steps", "exposures", "rates", "recall %", "bits known"),
            "bits a parameter",
        ],
        rows,
    )


def _speeds(candidates: dict[str, dict]) -> Table:
    rows = []
    for found in candidates.values():
        reached = [_reached(seed["curve"]) for seed in found["seeds"]]
        learned = [each for each in reached if each]
        cells = [f"not by {len(reached) - len(learned)} of {len(reached)}"] * 3
        if len(learned) == len(reached):
            seconds, steps = zip(*learned)
            each_step = found["exposures"] / found["steps"]
            cells = [
                over_seeds(seconds, ",.0f"),
                over_seeds(steps, ",.0f"),
                over_seeds(step * each_step for step in steps),
            ]
        rows.append([found["title"], *cells])
    return Table(
        f"How soon each model knows {LEARNED:.0%}",
        "Seconds are those of steps alone. Recall was measured at a few steps, "
        "and is taken for a line between them.",
        ["model", "seconds", "steps", "exposures"],
        rows,
    )


def _reached(curve: list[dict]) -> tuple[float, float] | None:
    """The seconds and the steps after which enough was known, if it was."""
    before = {"recall": 0.0, "seconds": 0.0, "step": 0}
    for point in curve:
        if point["recall"] >= LEARNED:
            recalls = before["recall"], point["recall"]
            share = (LEARNED - recalls[0]) / (recalls[1] - recalls[0])
            seconds, steps = (
                before[name] + share * (point[name] - before[name])
                for name in ("seconds", "step")
            )
            return seconds, steps
        before = point
    return None


def _ablated(candidates: dict[str, dict]) -> Table:
    rows = []
    for key, found in candidates.items():
        seeds = found["seeds"]
        if "ablated" not in seeds[0]:
            continue
        rows.append(
            [
                found["title"],
                over_seeds(100 * seed["recall"] for seed in seeds),
                *(
                    over_seeds((100 * s["ablated"][how] for s in seeds), ".2f")
                    for how in ("zero", "shuffle")
                ),
                _used(seeds, "mu"),
                # All rows of n-grams have the same weight.
                "-" if CANDIDATES[key].ngrams else _used(seeds, "top1_mu"),
            ]
        )
    return Table(
        "What is left without the memory's contents",
        "Recall of the trained models with all values set to zero, and with "
        "the rows of the table shuffled; slots that are read when all facts "
        "are asked for, and those that are the best of a head.",
        [
            *("model", "recall %", "values zero", "rows shuffled"),
            *("slots used %", "top-1 used %"),
        ],
        rows,
    )


def _rounded(candidates: dict[str, dict]) -> Table:
    rows = []
    for found in candidates.values():
        seeds, parameters = found["seeds"], found["parameters"]
        if "int8" not in seeds[0]:
            continue
        kinds = (seeds, [seed["int8"] for seed in seeds])
        rows.append(
            [
                found["title"],
                *(
                    over_seeds(
                        (one["bits"] / parameters for one in kind), ".3f"
                    )
                    for kind in kinds
                ),
                *(
                    over_seeds(100 * one["recall"] for one in kind)
                    for kind in kinds
                ),
            ]
        )
    return Table(
        "With values in int8",
        "Bits a parameter and recall of the trained models, and of the same "
        "with the values of its memories rounded to int8, with a scale for "
        "each row, as exports can have them.",
        [
            *("model", "bits a parameter", "with int8"),
            *("recall %", "with int8"),
        ],
        rows,
    )


def _used(seeds: list[dict], name: str) -> str:
    """The share of slots of each memory, the lowest one first."""
    usages = [seed["memory_usage"] for seed in seeds]
    return ", ".join(
        over_seeds(100 * usage[layer][name] for usage in usages)
        for layer in usages[0]
    )


def _grid(candidates: dict[str, dict]) -> Table:
    return Table(
        "Learning rates that were tried",
        "With another seed; the best ones were taken. Once a model knew 99.9 % "
        "with some rates, no others were tried. Best rates that are the lowest "
        "or the highest of their grid may not be the best ones.",
        ["model", "rates", "recall %"],
        [
            [
                found["title"],
                _rates(key, tried["rates"]),
                f"{100 * tried['recall']:.1f}",
            ]
            for key, found in candidates.items()
            for tried in found["grid"]
        ],
    )


def _sweep(sweep: list[dict], main_size: int) -> list[Table]:
    """Tables of recall: of all models, and of ResM by its slots."""
    of_models: dict[str, dict[int, float]] = {}
    of_tables: dict[str, dict[int, float]] = {}
    for found in sorted(sweep, key=lambda found: found["num_sub_keys"]):
        number, recall = found["facts"], found["recall"]
        if found["num_sub_keys"] == main_size:
            title = CANDIDATES[found["candidate"]].title
            of_models.setdefault(title, {})[number] = recall
        if found["candidate"] == "resm":
            title = f"{found['num_sub_keys'] ** 2:,} slots"
            of_tables.setdefault(title, {})[number] = recall
    return [
        Table(
            "More and more facts",
            "Recall in percent, after as long as above, or as many "
            "exposures, with the same rates. Learned is the largest number "
            f"with a recall of at least {LEARNED:.0%}. It was found by "
            "bisection, so that not every number was tried.",
            *_by_facts("model", of_models),
        ),
        Table(
            "Larger and larger tables",
            "As before, ResM by its number of slots.",
            *_by_facts("ResM", of_tables),
        ),
    ]


def _by_facts(
    what: str, found: dict[str, dict[int, float]]
) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a table."""
    numbers = sorted({number for each in found.values() for number in each})
    header = [what, *(f"{number:,} facts" for number in numbers), "learned"]
    rows = []
    for title, recalls in found.items():
        learned = [n for n, recall in recalls.items() if recall >= LEARNED]
        cells = [
            f"{100 * recalls[n]:.1f}" if n in recalls else "-" for n in numbers
        ]
        rows.append([title, *cells, f"{max(learned):,}" if learned else "-"])
    return header, rows


def _rates(key: str, rates: Sequence[float]) -> str:
    of_all, of_values = rates
    if CANDIDATES[key].has_memory or CANDIDATES[key].experts:
        return f"{of_all:g}, {of_values:g}"
    return f"{of_all:g}"


def _draw(findings: dict) -> dict[str, tuple[Figure, str]]:
    curves = {
        found["title"]: [
            (0.0, 0.0),
            *((point["seconds"], point["recall"]) for point in found["curve"]),
        ]
        for found in findings["candidates"].values()
    }
    plots = {"recall": (plot_recall(curves), "Recall while training.")}
    if findings["sweep"]:
        curves = {}
        for found in findings["sweep"]:
            title = CANDIDATES[found["candidate"]].title
            if found["num_sub_keys"] != findings["num_sub_keys"]:
                title += f", {found['num_sub_keys'] ** 2:,} slots"
            curves.setdefault(title, []).append((found["facts"], found["bits"]))
        caption = "Bits that are known, by the number of facts."
        plots["capacity"] = (plot_capacity(curves), caption)
    return plots
