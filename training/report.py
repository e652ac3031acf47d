"""The final table of a pretraining run."""

import json

from training.run_directory import RunDirectory
from training.run_directory import write_whole


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


def format_memory_usage(usage: dict, num_slots: int) -> list[str]:
    """Returns the lines of a table of memory usage, none if there is no memory.

    Args:
        usage: The figures of `keras_pkm.metrics.MemoryUsage` by layer.
        num_slots: Slots of each memory.
    """
    if not usage:
        return []
    lines = [
        "",
        "| memory layer | slots | used % | top-1 used % | per token % | "
        "KL_u | KL_w | top-1 reads |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for layer, figures in usage.items():
        lines.append(
            f"| {layer} | {num_slots:,} | {100 * figures['mu']:.1f} | "
            f"{100 * figures['top1_mu']:.1f} | "
            f"{100 * figures['top1_token_mu']:.1f} | {figures['kl_u']:.2f} | "
            f"{figures['kl_w']:.2f} | {figures['top1_reads']:,} |"
        )
    if any(figures["top1_reads"] < 5 * num_slots for figures in usage.values()):
        lines += [
            "",
            "Fewer than five top-1 reads a slot: usage would be higher on more "
            "held-out text.",
        ]
    return lines


def write_results(results: dict, run: RunDirectory):
    """Writes `results.md`, then `results.json`, which ends the run."""
    write_whole(run.root / "results.md", format_results(results) + "\n")
    write_whole(run.results, json.dumps(results, indent=2) + "\n")
