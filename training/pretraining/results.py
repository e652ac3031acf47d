"""The final table of a pretraining run."""

import json

from keras_pkm.metrics import format_memory_usage
from keras_pkm.runs.run_directory import RunDirectory
from keras_pkm.runs.run_directory import write_whole


def format_results(results: dict) -> str:
    """Returns the results of a run as Markdown tables."""
    lines = [
        "| model | steps | held-out perplexity | tokens/s |",
        "|---|---:|---:|---:|",
        f"| unigram | - | {results['unigram_perplexity']:.2f} | - |",
    ]
    for stage in results["stages"]:
        if stage["perplexity_before"] is not None:
            lines.append(
                f"| {stage['name']}, before training | 0 | "
                f"{stage['perplexity_before']:.2f} | - |"
            )
        lines.append(
            f"| {stage['name']} | {stage['steps']:,} | "
            f"{stage['perplexity']:.2f} | {stage['tokens_per_second']:,.0f} |"
        )
    usage = results["stages"][-1].get("memory_usage", {})
    lines += format_memory_usage(usage, results["num_slots"])
    return "\n".join(lines)


def write_results(results: dict, run: RunDirectory):
    """Writes `results.md`, then `results.json`, which ends the run."""
    write_whole(run.root / "results.md", format_results(results) + "\n")
    write_whole(run.results, json.dumps(results, indent=2) + "\n")
