"""The tables of a comparison of recall."""

import statistics

from training.knowledge.contenders import CONTENDERS
from training.knowledge.sweep import LEARNED


def make_tables(findings: dict) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Returns headers and rows, as text, by the titles of the tables."""
    contenders = findings["contenders"]
    tables = {"What each model knows": _models(contenders)}
    if ablated := _ablated(contenders):
        tables["What is left without the memory's contents"] = ablated
    if findings["sweep"]:
        models, tables_of_slots = _sweep(
            findings["sweep"], findings["num_sub_keys"]
        )
        tables["More and more facts"] = models
        tables["Larger and larger tables"] = tables_of_slots
    if any(contender["grid"] for contender in contenders.values()):
        tables["Learning rates that were tried"] = _grid(contenders)
    return tables


def _models(contenders):
    header = [
        *("model", "parameters", "optimizer MiB", "width", "ms a step"),
        *("steps", "exposures", "rates", "recall %", "bits known"),
        "bits a parameter",
    ]
    rows = []
    for key, found in contenders.items():
        recalls = [100 * seed["recall"] for seed in found["seeds"]]
        bits = found["bits"]
        rows.append(
            [
                found["title"],
                f"{found['parameters']:,}",
                _mebibytes(found["optimizer_bytes"]),
                f"{found['width']:,}",
                ", ".join(f"{each:.0f}" for each in found["milliseconds"]),
                f"{found['steps']:,}",
                f"{found['exposures']:.1f}",
                _rates(key, found["rates"]),
                _over_seeds(recalls),
                "-" if bits is None else f"{bits:,.0f}",
                "-" if bits is None else f"{bits / found['parameters']:.2f}",
            ]
        )
    return header, rows


def _ablated(contenders):
    rows = []
    for found in contenders.values():
        if "ablated" not in found["seeds"][0]:
            continue
        cells = [
            [100 * seed["ablated"][how] for seed in found["seeds"]]
            for how in ("zero", "shuffle")
        ]
        rows.append(
            [
                found["title"],
                f"{100 * found['recall']:.1f}",
                *(_over_seeds(each, digits=2) for each in cells),
                _used(found["seeds"], "mu"),
                _used(found["seeds"], "top1_mu"),
            ]
        )
    header = [
        *("model", "recall %", "values zero", "rows shuffled"),
        *("slots used %", "top-1 used %"),
    ]
    return (header, rows) if rows else None


def _used(seeds, name):
    """The share of slots of each memory, the lowest one first."""
    usages = [seed["memory_usage"] for seed in seeds]
    return ", ".join(
        _over_seeds([100 * usage[layer][name] for usage in usages])
        for layer in usages[0]
    )


def _grid(contenders):
    rows = [
        [
            found["title"],
            _rates(key, tried["rates"]),
            f"{100 * tried['recall']:.1f}",
        ]
        for key, found in contenders.items()
        for tried in found["grid"]
    ]
    return ["model", "rates", "recall %"], rows


def _sweep(sweep, main_size):
    """Returns tables of recall: for all models, and for ResM by its slots."""
    of_models, of_tables = {}, {}
    for found in sorted(sweep, key=lambda found: found["num_sub_keys"]):
        number, recall = found["facts"], found["recall"]
        if found["num_sub_keys"] == main_size:
            title = CONTENDERS[found["contender"]].title
            of_models.setdefault(title, {})[number] = recall
        if found["contender"] == "resm":
            title = f"{found['num_sub_keys'] ** 2:,} slots"
            of_tables.setdefault(title, {})[number] = recall
    return _by_facts("model", of_models), _by_facts("ResM", of_tables)


def _by_facts(what, found):
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


def _mebibytes(number):
    # Older trials did not count them.
    return "-" if number is None else f"{number / 2**20:.1f}"


def _rates(key, rates):
    of_all, of_values = rates
    if CONTENDERS[key].has_memory:
        return f"{of_all:g}, {of_values:g}"
    return f"{of_all:g}"


def _over_seeds(values, digits=1):
    """The median, with the range if there are several."""
    middle = f"{statistics.median(values):.{digits}f}"
    if len(values) == 1:
        return middle
    return f"{middle} ({min(values):.{digits}f}-{max(values):.{digits}f})"
