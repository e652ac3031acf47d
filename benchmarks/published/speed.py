"""The figures of speed."""

from benchmarks.published.costs import costs
from benchmarks.published.figure import Figure
from benchmarks.published.figure import Table
from benchmarks.published.figure import report_table

_SPEED = "benchmarks/README.md"

# In the README and on a page of the site, from several benchmarks.
_COSTS = tuple(
    Table(page, "costs", costs)
    for page in ("README.md", "docs/results/speed.md")
)


# They import all of keras_pkm.
_UNUSED = ("keras_pkm.teaching", "keras_pkm.converters", "keras_pkm.callbacks")


def _benchmark(name, arguments, contenders=(), in_costs=False, unused=_UNUSED):
    """A script of `benchmarks/`, with its table."""
    script = name.split("-")[0]
    command = f"python benchmarks/{script}.py --output {{out}} {arguments}"
    table = Table(_SPEED, name, report_table(f"{script}.md"))
    return Figure(
        name,
        (command.strip(),),
        (f"benchmarks.{script}", *contenders),
        (table, *(_COSTS if in_costs else ())),
        unused=unused,
    )


_LAYERS = (
    "benchmarks.contenders.keras_contenders",
    "benchmarks.contenders.torch_contenders",
)
_BERTS = ("benchmarks.contenders.bert_contenders",)

SPEED = (
    _benchmark("layer-short", "--tokens 128 2048 --rounds 9", _LAYERS, True),
    _benchmark("layer-long", "--tokens 4096 8192 --rounds 5", _LAYERS),
    _benchmark("inference-1", "--batches 1 --rounds 15", _BERTS, True),
    _benchmark("inference-32", "--batches 32 --rounds 5", _BERTS),
    _benchmark(
        "inference-portable",
        "--batches 1 --rounds 7 --models BASE+ResM --implementation portable",
        _BERTS,
        in_costs=True,
    ),
    _benchmark("training", "--rounds 5", _BERTS, True),
    _benchmark("monitoring", "--rounds 5", _BERTS, unused=_UNUSED[:2]),
    _benchmark("scaling", "--rounds 9", (*_BERTS, *_LAYERS)),
    _benchmark("formulations", ""),
)
