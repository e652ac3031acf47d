"""The figures of speed."""

from benchmarks.published.costs import costs
from benchmarks.published.figure import Figure
from benchmarks.published.figure import Table
from benchmarks.published.figure import report_table

_SPEED = "benchmarks/README.md"

# In the README and on a page of the site, from several benchmarks. The page
# says what the paper's figures mean beside ours.
_COSTS = (
    Table("README.md", "costs", lambda each: costs(each, with_paper=False)),
    Table("docs/results/speed.md", "costs", costs),
)


def _benchmark(name, arguments, in_costs=False):
    """A script of `benchmarks/`, with its table."""
    script = name.split("-")[0]
    command = f"python benchmarks/{script}.py --out {{out}} {arguments}"
    table = Table(_SPEED, name, report_table(f"{script}.md"))
    return Figure(
        name, (command.strip(),), (table, *(_COSTS if in_costs else ()))
    )


SPEED = (
    _benchmark("layer-short", "--tokens 128 2048 --rounds 9", True),
    _benchmark("layer-long", "--tokens 4096 8192 --rounds 5"),
    _benchmark("inference-1", "--batches 1 --rounds 15", True),
    _benchmark("inference-32", "--batches 32 --rounds 5"),
    _benchmark(
        "inference-portable",
        "--batches 1 --rounds 7 --models BASE+ResM --implementation portable",
        in_costs=True,
    ),
    _benchmark("training", "--rounds 5", True),
    _benchmark("monitoring", "--rounds 5"),
    _benchmark("scaling", "--rounds 9"),
    _benchmark("formulations", ""),
)
