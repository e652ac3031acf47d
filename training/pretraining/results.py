"""The results of a pretraining run, and their table."""

from keras_pkm.metrics import format_memory_usage
from training.reports.markdown import markdown_table


def format_results(results: dict) -> str:
    """Returns the results of a run as Markdown tables."""
    has_bytes = "bits_per_byte" in results["stages"][-1]
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
                f"{stage['bits_per_byte']:.3f}" if has_bytes else "-",
            ]
        )
    columns = [
        *("model", "steps", "held-out perplexity", "tokens/s", "bits/byte")
    ]
    if not has_bytes:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    table = markdown_table(columns, rows)
    usage = results["stages"][-1].get("memory_usage", {})
    return "\n".join([table, *format_memory_usage(usage, results["num_slots"])])
