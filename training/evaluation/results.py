"""The table of a measured perplexity, with the paper's figures."""

from keras_pkm.metrics import format_memory_usage
from training.reports.markdown import markdown_table
from training.reports.paper import format_paper_perplexities

_ABLATIONS = {
    "zero": "All values of the memories were set to zero.",
    "shuffle": "The rows of the memories' tables were shuffled.",
}


def format_results(results: dict) -> str:
    """Returns the figures as Markdown."""
    columns = ["text", results["kind"], "standard error", "predicted tokens"]
    row = [
        results["text"],
        f"{results['perplexity']:.2f}",
        f"{results['standard_error']:.2f}",
        f"{results['predicted_tokens']:,}",
    ]
    is_causal = results["bits_per_byte"] is not None
    if is_causal:
        columns.append("bits/byte")
        row.append(f"{results['bits_per_byte']:.3f}")
    table = markdown_table(columns, [row])
    usage = format_memory_usage(results["memory_usage"], results["num_slots"])
    lines = [table, *usage]
    if results["ablated_memory"] is not None:
        lines += ["", _ABLATIONS[results["ablated_memory"]]]
    # The paper has masked language models only.
    if results["kind"] == "perplexity" and not is_causal:
        lines += ["", format_paper_perplexities()]
    return "\n".join(lines)
