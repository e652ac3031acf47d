"""The report on a model's memories: numbers, plots, page."""

import dataclasses
import json
import pathlib

import numpy as np
from matplotlib.figure import Figure

from keras_pkm.files.whole_files import write_whole
from keras_pkm.metrics.memory_staleness import NEVER
from keras_pkm.metrics.usage_table import COLUMNS
from keras_pkm.metrics.usage_table import has_few_reads
from keras_pkm.metrics.usage_table import memory_usage_cells
from training.measuring.memory_reads import TextReads
from training.measuring.slot_tokens import SlotReaders
from training.reports import html_page as page
from training.reports import plots
from training.reports.paper import paper_memory_usage

# Number of sorted counts in report.json, spaced evenly on a logarithmic axis.
_KEPT_COUNTS = 200
_FEW = (
    " Fewer than five top-1 reads a slot: usage would be higher on more text."
)


@dataclasses.dataclass(frozen=True)
class MemoryReport:
    """The findings about a model's memories."""

    # The name of the model.
    model: str
    # The name of the text.
    data: str
    # The reads on the text.
    reads: TextReads
    # The most read slots and the tokens that read them, by the number of the
    # layer.
    readers: dict[int, list[SlotReaders]]
    # From `training.analysis.analyze.measure_ablations`.
    ablations: dict[str, dict[str, float | None]]
    # From `training.pretraining.logs.read_staleness`.
    staleness: dict[int, dict[int, dict[int, float]]]
    # From `training.pretraining.logs.read_curves_of_runs`.
    curves: dict[str, dict[str, list]]
    # From `training.measuring.memory_reads.compare_classes`, by the name of the
    # model.
    classes: dict[str, dict[int, dict[str, float]]]
    # The names of the two classes, that of label 0 first.
    class_names: tuple[str, str] | None = None

    def numbers(self) -> dict:
        """Returns everything, serializable as JSON."""
        return {
            "model": self.model,
            "data": self.data,
            "tokens": self.reads.tokens,
            "memories": {
                number: {
                    "num_slots": reads.num_slots,
                    **reads.figures,
                    "coverage": reads.coverage,
                    "sorted_reads": _thinned(reads.counts["reads"]),
                    "sorted_top1": _thinned(reads.counts["top1"]),
                    "readers": [
                        dataclasses.asdict(reader)
                        for reader in self.readers.get(number, [])
                    ],
                }
                for number, reads in self.reads.memories.items()
            },
            "ablations": self.ablations,
            "staleness": {
                number: {
                    step: {
                        "never" if last == NEVER else last: share
                        for last, share in shares.items()
                    }
                    for step, shares in by_step.items()
                }
                for number, by_step in self.staleness.items()
            },
            "curves": self.curves,
            "class_names": self.class_names,
            "classes": self.classes,
        }

    def figures(self) -> dict[str, Figure]:
        """Returns the plots by the names of their files."""
        memories = self.reads.memories
        drawn = {
            "slot_counts": plots.plot_slot_counts(memories),
            "grids": plots.plot_grids(memories),
            "coverage": plots.plot_coverage(memories),
        }
        if self.staleness:
            drawn["staleness"] = plots.plot_staleness(self.staleness)
        if self.curves:
            drawn["curves"] = plots.plot_curves(self.curves)
        if self.classes:
            drawn["classes"] = plots.plot_classes(self.classes)
        return drawn

    def write(self, directory: pathlib.Path) -> pathlib.Path:
        """Writes all files of the report, and returns the page's path."""
        directory.mkdir(parents=True, exist_ok=True)
        drawn = self.figures()
        for name, figure in drawn.items():
            figure.savefig(directory / f"{name}.png", dpi=150)
            figure.savefig(
                directory / f"{name}.svg", metadata={"Date": None}, dpi=150
            )
        write_whole(
            directory / "report.json", json.dumps(self.numbers(), indent=2)
        )
        path = directory / "report.html"
        title = f"Memories of {self.model}"
        write_whole(path, page.make_page(title, self._sections(drawn)))
        return path

    def _sections(self, drawn: dict[str, Figure]) -> dict[str, list[str]]:
        sections = {"Use": self._usage(drawn)}
        if self.ablations:
            sections["Without the memory's contents"] = self._ablations()
        if self.staleness:
            sections["Staleness"] = [
                page.note(
                    "Each bar is a checkpoint, each colour the last one, up to "
                    "then, at which slots were the best of a head on the "
                    "held-out text. A bar's uppermost blue are slots that "
                    "training left longest ago; grey ones were never read."
                ),
                page.picture(
                    drawn["staleness"],
                    "When slots were read for the last time (the paper's "
                    "figure 2 shows this of its models).",
                ),
            ]
        if self.curves:
            caption = "Perplexity while training (as figure 3)."
            sections["Training"] = [page.picture(drawn["curves"], caption)]
        if self.classes and self.class_names:
            sections["Classes"] = self._classes(drawn, *self.class_names)
        for number, readers in self.readers.items():
            sections[f"Who reads which slots: layer {number}"] = [
                page.note(
                    "The slots that were most often the best of a head. "
                    "Typical tokens are frequent among a slot's readers and "
                    "rarer elsewhere: share of the slot's reads, and how many "
                    "times the token's share of the text that is."
                ),
                page.readers_table(readers),
            ]
        return sections

    def _usage(self, drawn: dict[str, Figure]) -> list[str]:
        memories = self.reads.memories
        rows = [
            [
                f"layer {number}",
                *memory_usage_cells(reads.figures, reads.num_slots),
            ]
            for number, reads in memories.items()
        ]
        paper = [
            [f"the paper's {model}, layer {layer}", "262,144", "-", top1, "-"]
            + [kl_u, kl_w, "-"]
            for model, layers in paper_memory_usage().items()
            for layer, (top1, kl_u, kl_w) in layers.items()
        ]
        few = any(
            has_few_reads(reads.figures, reads.num_slots)
            for reads in memories.values()
        )
        return [
            page.note(
                f"{self.reads.tokens:,} tokens of {self.data}, padding "
                f"excluded.{_FEW if few else ''}"
            ),
            page.table(["memory", *COLUMNS], [*rows, *paper], len(paper)),
            page.note(
                "Rows in italics are the paper's (table 2), of its models on "
                "its data, not ours."
            ),
            page.picture(
                drawn["slot_counts"],
                "How often slots are read. A flat line is even use.",
            ),
            page.picture(
                drawn["grids"],
                "Reads of each slot, row by row. With product keys, stripes "
                "are sub-keys that many queries like.",
            ),
            page.picture(
                drawn["coverage"],
                "Slots used by the first so many tokens. Where the curves "
                "still rise, more text would show more use.",
            ),
        ]

    def _ablations(self) -> list[str]:
        titles = {
            "trained": "as trained",
            "zero": "all values zero",
            "shuffle": "rows shuffled",
        }
        return [
            page.note(
                "What the memories contain is worth the difference in "
                "perplexity on the masked tokens of this text."
            ),
            page.table(
                ["memory", "perplexity", "standard error"],
                [
                    [
                        titles[how],
                        f"{found['perplexity']:.2f}",
                        "-"
                        if found["standard_error"] is None
                        else f"{found['standard_error']:.2f}",
                    ]
                    for how, found in self.ablations.items()
                ],
            ),
        ]

    def _classes(
        self, drawn: dict[str, Figure], no: str, yes: str
    ) -> list[str]:
        return [
            page.note(
                f"Top-1 reads of examples labelled {yes} against {no}. KL is "
                f"KL({yes} || {no}), with half a read added to each slot of "
                "the latter; outside is the share of the former's reads in "
                "slots that the latter never reads."
            ),
            page.table(
                ["model, layer", "KL", "outside %", "IoU", "reads"],
                [
                    [
                        f"{model}, {number}",
                        f"{figures['kl']:.3f}",
                        f"{100 * figures['outside']:.1f}",
                        f"{figures['iou']:.3f}",
                        f"{figures['reads_0']:,} + {figures['reads_1']:,}",
                    ]
                    for model, layers in self.classes.items()
                    for number, figures in layers.items()
                ],
            ),
            page.picture(
                drawn["classes"],
                "How differently the classes read (as figure 4).",
            ),
        ]


def _thinned(counts: np.ndarray) -> list[dict[str, int]]:
    """The sorted counts at positions spaced evenly on a logarithmic axis."""
    ordered = np.sort(counts)[::-1]
    places = np.unique(
        np.geomspace(1, len(ordered), _KEPT_COUNTS).round().astype(int)
    )
    return [
        {"rank": int(place), "reads": int(ordered[place - 1])}
        for place in places
    ]
