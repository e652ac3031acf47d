"""The report on a comparison of recall: Markdown, JSON and plots."""

import shlex

from keras_pkm.files.whole_files import replacing_file
from keras_pkm.files.whole_files import write_whole
from training.knowledge.contenders import CONTENDERS
from training.knowledge.plan import plan_jobs
from training.knowledge.recall_directory import RecallDirectory
from training.knowledge.recipe import RecallRecipe
from training.knowledge.tables import make_tables
from training.reports.knowledge_plots import plot_capacity
from training.reports.knowledge_plots import plot_recall
from training.reports.markdown import markdown_table
from training.runs.files import write_json

_EXPLANATIONS = {
    "What each model knows": (
        "Times of a step are those of a model alone, all measured in turn. "
        "Exposures are how often each fact was seen. Rates are those of all "
        "but the memory values, and of these. Recall is the share of the facts "
        "whose value is predicted; bits known are facts × (log2 values − cross "
        "entropy in bits)."
    ),
    "What is left without the memory's contents": (
        "Recall of the trained models with all values set to zero, and with "
        "the rows of the table shuffled; slots that are read when all facts "
        "are asked for, and those that are the best of a head."
    ),
    "More and more facts": (
        "Recall in percent after the same time as above, with the same rates. "
        "Learned is the largest number with a recall of at least 95 %. It was "
        "found by bisection, so that not every number was tried."
    ),
    "Larger and larger tables": (
        "As before, ResM by its number of slots, each after the same time."
    ),
    "Learning rates that were tried": (
        "With another seed; the best ones were taken. Once a model knew 99.9 % "
        "with some rates, no others were tried."
    ),
}


def write_report(recipe: RecallRecipe, findings: dict) -> None:
    """Writes `report.md`, `report.json` and the plots."""
    directory = RecallDirectory(recipe.out)
    figures = _draw(findings)
    for name, figure in figures.items():
        for kind in ("png", "svg"):
            with replacing_file(directory.plot(name, kind)) as path:
                figure.savefig(path, format=kind, dpi=150)
    lines = ["# How many facts models know", _summary(recipe, findings)]
    lines += [f"![{name}]({name}.png)" for name in figures]
    for title, (header, rows) in make_tables(findings).items():
        lines += [f"## {title}", markdown_table(header, rows)]
        lines.append(_EXPLANATIONS[title])
    commands = [
        shlex.join(["python", f"training/{job.script}", *job.args])
        for job in plan_jobs(recipe)
    ]
    lines += ["## Jobs", "\n".join(["```shell", *commands, "```"])]
    write_json(directory.numbers, findings)
    write_whole(directory.table, "\n\n".join(lines) + "\n")


def _summary(recipe, findings):
    number = next(iter(findings["contenders"].values()))["seeds"][0]["facts"]
    what = (
        f"{number:,} random facts with one of {recipe.values:,} values each"
        if recipe.has_random_facts
        else f"the {number:,} facts of {recipe.facts}"
    )
    long = (
        f"{recipe.steps:,} steps"
        if recipe.steps
        else f"{recipe.seconds:,.0f} seconds"
    )
    kinds = {
        "masked": "BERTs",
        "causal": "GPT-2s, whose memories stand behind the layers,",
    }
    return (
        f"{kinds[recipe.objective]} were trained on {what} for {long} each, "
        f"{recipe.batch_size:,} facts a batch. Seeds: {recipe.seeds}."
    )


def _draw(findings):
    contenders = findings["contenders"]
    figures = {
        "recall": plot_recall(
            {
                found["title"]: [
                    (0.0, 0.0),
                    *(
                        (point["seconds"], point["recall"])
                        for point in found["curve"]
                    ),
                ]
                for found in contenders.values()
            }
        )
    }
    if findings["sweep"]:
        curves = {}
        for found in findings["sweep"]:
            title = CONTENDERS[found["contender"]].title
            if found["num_sub_keys"] != findings["num_sub_keys"]:
                title += f", {found['num_sub_keys'] ** 2:,} slots"
            curves.setdefault(title, []).append((found["facts"], found["bits"]))
        figures["capacity"] = plot_capacity(curves)
    return figures
