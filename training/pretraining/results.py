"""The results of a pretraining run, as tables."""

from keras_pkm.metrics import format_memory_usage
from training.reports.markdown import markdown_table


def format_results(results: dict) -> str:
    """Returns the results of a run as Markdown tables."""
    table = markdown_table(*result_rows(results))
    usage = results["stages"][-1].get("memory_usage", {})
    return "\n".join([table, *format_memory_usage(usage, results["num_slots"])])


def result_rows(results: dict) -> tuple[list[str], list[list[str]]]:
    """Returns the header and the rows of the table of stages."""
    columns = ["model", "steps", "held-out perplexity", "tokens/s"]
    if "bits_per_byte" in results["stages"][-1]:
        columns.append("bits/byte")
    rows = [["unigram", "-", f"{results['unigram_perplexity']:.2f}", "-", "-"]]
    for stage in results["stages"]:
        if stage["perplexity_before"] is not None:
            before = f"{stage['perplexity_before']:.2f}"
            name = f"{stage['name']}, before training"
            rows.append([name, "0", before, "-", "-"])
        rows.append(
            [
                stage["name"],
                f"{stage['steps']:,}",
                f"{stage['perplexity']:.2f}",
                f"{stage['tokens_per_second']:,.0f}",
                f"{stage.get('bits_per_byte', 0):.3f}",
            ]
        )
    return columns, [row[: len(columns)] for row in rows]
