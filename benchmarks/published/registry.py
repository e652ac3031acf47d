"""All figures of the README and the documentation, with their commands."""

from benchmarks.published.comparisons import COMPARISONS
from benchmarks.published.comparisons import WIKI
from benchmarks.published.figure import Figure
from benchmarks.published.figure import Table
from benchmarks.published.figure import printed_tables
from benchmarks.published.figure import report_table
from benchmarks.published.speed import SPEED
from benchmarks.published.taught import easy_and_realistic
from benchmarks.published.taught import taught_facts

_RECALL_KEEPS = (
    *("report.md", "report.json", "recall.json", "*step-times.json"),
    *("rates/*.json", "trials/*.json", "sweep/*.json", "*.png"),
)
_FORGETTING_KEEPS = (
    *("report.md", "report.json", "forgetting.json", "forgetting.png"),
    *("forgetting.svg", "bases/*.json", "trials/*.json"),
)
_CAPACITY = "docs/results/capacity.md"
_TEACHING = "docs/results/teaching.md"
_DECODERS = "docs/results/decoders.md"
_KNOWN = "What each model knows"

_WAYS = "The best learning rate of each way"
_WIKI_RUN = (
    "python training/pretrain.py --text wiki.train.tokens "
    "--validation wiki.valid.tokens --vocabulary-size 8000 "
    "--memory-learning-rate 5e-3 --memory-schedule linear --plain-steps 1500 "
    "--steps 1500 --memory-heads 4 "
)
_README_RECALL = {
    "model": "model",
    "parameters": "parameters",
    "ms a step": "ms a step",
    "exposures": "times it saw each fact",
    "recall %": "facts known %",
}
# On the pages that one reads first, from both comparisons of teaching.
_TAUGHT = tuple(
    Table(
        page,
        "taught",
        easy_and_realistic(
            {
                "important slots (the default)": ("slots-adam", "taught-slots"),
                "all values that are read": ("values-adam", "taught-values"),
                "all weights": ("all", "taught-all"),
            }
        ),
    )
    for page in ("README.md", "docs/index.md")
)


def _known(page, name, **options):
    return Table(page, name, report_table("report.md", _KNOWN, **options))


def _headed(page, name, heading, **options):
    return Table(page, name, report_table("report.md", heading, **options))


FIGURES = (
    Figure(
        "start",
        ("python training/pretrain.py --strategy mirrored --out {out}/run",),
        (
            Table("README.md", "start", report_table("output-1.md")),
            Table("docs/index.md", "start", printed_tables("output-1.md")),
        ),
        keeps=("output-1.md",),
    ),
    Figure(
        "recall",
        ("python training/recall.py --full --sweep facts --out {out}",),
        (
            *(
                _known(
                    page,
                    "recall",
                    columns=_README_RECALL,
                    without=("PKM", "ResM+Init"),
                )
                for page in ("README.md", "docs/index.md")
            ),
            _known(_CAPACITY, "recall"),
            _headed(
                _CAPACITY,
                "ablation",
                "What is left without the memory's contents",
            ),
            _headed(_CAPACITY, "sweep", "More and more facts"),
            _headed(_CAPACITY, "tables", "Larger and larger tables"),
        ),
        keeps=_RECALL_KEEPS,
        pictures=(
            ("recall.png", "docs/recall.png"),
            ("capacity.png", "docs/capacity.png"),
        ),
    ),
    Figure(
        "recall-minutes",
        ("python training/recall.py --out {out}",),
        (_known(_CAPACITY, "minutes"),),
        keeps=_RECALL_KEEPS,
    ),
    Figure(
        "recall-causal",
        ("python training/recall.py --objective causal --out {out}",),
        (_known(_DECODERS, "causal"),),
        keeps=_RECALL_KEEPS,
    ),
    Figure(
        "recall-rates",
        (
            "python training/recall.py --out {out} --candidates resm "
            "--learning-rates 2e-3 --memory-learning-rates 1e-3 1e-2 3e-2",
        ),
        (_headed(_CAPACITY, "rates", "Learning rates that were tried"),),
        keeps=_RECALL_KEEPS,
    ),
    Figure(
        "recall-unicode",
        (
            "python training/recall.py --out {out} --facts unicode "
            "--seconds 600 --processes 1",
        ),
        (_known(_CAPACITY, "unicode"),),
        keeps=_RECALL_KEEPS,
    ),
    Figure(
        "forgetting",
        ("python training/teach.py --compare --seeds 3 --out {out}",),
        (_headed(_TEACHING, "forgetting", _WAYS), *_TAUGHT),
        keeps=_FORGETTING_KEEPS,
        pictures=(("forgetting.png", "docs/forgetting.png"),),
    ),
    Figure(
        "forgetting-text",
        (
            _WIKI_RUN + "--memory-layers 2 3 --num-sub-keys 256 "
            "--out {out}/wiki",
            "python training/teach.py --compare --model {out}/wiki "
            "--text new.txt --keep old.txt --steps 400 --slots 500 "
            "--out {out}/compare",
            *(
                "python training/teach.py --model {out}/wiki --facts facts.tsv "
                f"--keep old.txt{flags} --out {{out}}/taught-{name}"
                for name, flags in (
                    ("slots", ""),
                    ("values", " --method values"),
                    ("all", " --method all"),
                )
            ),
        ),
        (
            Table(
                _TEACHING,
                "forgetting-text",
                report_table("compare/report.md", _WAYS),
            ),
            Table(
                _TEACHING,
                "taught-text",
                taught_facts(
                    {
                        "taught-slots": "important slots (the default)",
                        "taught-values": "values, `--method values`",
                        "taught-all": "all weights, `--method all`",
                    }
                ),
            ),
            *_TAUGHT,
        ),
        needs=(*WIKI, "new.txt", "old.txt", "facts.tsv"),
        keeps=(
            *(f"compare/{each}" for each in _FORGETTING_KEEPS),
            "taught-*/results.json",
        ),
    ),
    Figure(
        "decoder",
        (
            _WIKI_RUN + "--objective causal --backbone gpt2 --num-layers 4 "
            "--memory-layers 2 4 --num-sub-keys 128 --out {out}/gpt2",
            "python training/teach.py --model {out}/gpt2 --facts facts.tsv "
            "--keep old.txt --out {out}/taught",
        ),
        (
            Table(_DECODERS, "decoder", printed_tables("output-1.md")),
            Table(_DECODERS, "decoder-taught", printed_tables("output-2.md")),
        ),
        needs=(*WIKI, "facts.tsv", "old.txt"),
        keeps=("output-*.md",),
    ),
    *COMPARISONS,
    *SPEED,
)
