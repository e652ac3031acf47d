"""The results of teaching, as a table."""

from training.reports.markdown import markdown_table

# Number of facts that are listed.
_SHOWN = 20


def format_results(results: dict) -> str:
    """Returns what was learned and forgotten as Markdown."""
    rows = result_rows(results)
    parts = [markdown_table(["what", "before", "after"], rows)] if rows else []
    if "edit" in results:
        parts += _what_remains(results["edit"])
    if "steps" in results:
        steps = results["steps"]
        told = f"{sum(steps):,} steps"
        if len(steps) > 1:
            told += f" in {len(steps):,} groups, at most {max(steps):,} each"
        parts.append(f"{told}.")
    if "new" in results:
        parts += _what_is_not_learned(results["new"], results["method"])
    for done in ("applied", "reverted"):
        if done in results:
            parts.append(f"{_rows_of(results[done])} were {done}.")
    if "new" in results and "patch" in results:
        parts.append(_describe_patch(results))
    if patches := results.get("patches"):
        named = [
            f"{each['file']} ({_rows_of(each['rows'])})" for each in patches
        ]
        parts.append(f"Patches that the model has: {'; '.join(named)}.")
    return "\n\n".join(parts)


def result_rows(results: dict) -> list[list[str]]:
    """Returns the rows of the table of what was learned and forgotten."""
    return [
        row
        for name, title in (("new", "new"), ("old", "to keep"))
        if name in results
        for row in _rows(title, results[name])
    ]


_KINDS = {
    "near": "names that share a word with a subject",
    "far": "other names",
    "other": "other relations of the subjects",
    "never named": "other questions about the subjects",
    "two steps": "two steps from a subject",
    "known": "what models know",
}


def _what_remains(edit: dict) -> list[str]:
    """What a finished model answers as it did before."""
    rows = [
        [
            title,
            f"{100 * edit[kind]['same']:.1f} %",
            f"{100 * edit[kind]['bits']:.1f} %",
        ]
        for kind, title in _KINDS.items()
        if kind in edit
    ]
    header = ["as before", "next token", "bit for bit"]
    text = edit["text"]
    told = (
        f"The perplexity of other text was {text['perplexity_before']:.2f} and "
        f"is {text['perplexity_after']:.2f} (KL {text['divergence']:.4f})."
    )
    for kind, title in (
        ("paraphrase", "In the other phrasings"),
        ("document", "Behind other text"),
    ):
        if kind in edit:
            told += (
                f" {title}, {100 * edit[kind]['after']:.1f} % of the answers "
                f"are given, {100 * edit[kind]['before']:.1f} % before."
            )
    return [markdown_table(header, rows), told]


def _rows(title: str, found: dict) -> list[list[str]]:
    if "facts" not in found:
        before, after = found["perplexity_before"], found["perplexity_after"]
        return [
            [f"perplexity, {title}", f"{before:.2f}", f"{after:.2f}"],
            ["change", "", f"{100 * found['change']:+.2f} %"],
        ]
    name = f"{found['facts']:,} facts, {title}: known"
    before, after = found["known_before"], found["known_after"]
    rows = [[name, f"{100 * before:.1f} %", f"{100 * after:.1f} %"]]
    if title != "new" and found["kept"] is not None:
        rows.append(
            ["of those known before", "", f"{100 * found['kept']:.2f} %"]
        )
    return rows


def _what_is_not_learned(new: dict, method: str) -> list[str]:
    """Says what to do if not all of the new material was learned."""
    if "unknown" in new:
        return _unknown_facts(new)
    advice = "More --steps or a higher --learning-rate can teach more."
    if method == "slots":
        advice += (
            " So can --method values, but it may change more of what the model "
            "knew."
        )
    if "facts" in new:
        left = round(new["facts"] * (1 - new["known_after"]))
        known = "A fact is known if the model gives all tokens of its value."
        if not left:
            return [known]
        return [f"{left:,} of {new['facts']:,} are not known. {known} {advice}"]
    if 1 + new["change"] <= new["fall"]:
        return []
    return [
        f"The perplexity has not fallen to {new['fall']:g} of what it was. "
        f"{advice}"
    ]


def _unknown_facts(new: dict) -> list[str]:
    """Says which facts a finished model has not learned."""
    known = (
        "A fact is known if the model gives all tokens of its value in each "
        "of its phrasings."
    )
    unknown = new["unknown"]
    if not unknown:
        return [known]
    shown = [" / ".join(fact) for fact in unknown[:_SHOWN]]
    if len(unknown) > _SHOWN:
        shown.append(f"and {len(unknown) - _SHOWN:,} more")
    return [f"{known} Not known: {'; '.join(shown)}."]


def _rows_of(count: int) -> str:
    return f"{count:,} row{'s' if count != 1 else ''}"


def _describe_patch(results: dict) -> str:
    size, rows = results["patch"]["bytes"], results["patch"]["rows"]
    told = f"The patch has {_rows_of(rows)} and {size:,} bytes"
    facts = results["new"].get("facts")
    if facts:
        told += f", {size / facts:,.0f} a fact"
    if "seconds" in results["new"]:
        seconds = results["new"]["seconds"]
        told += (
            f". Teaching took {seconds:,.0f} seconds, "
            f"{seconds / facts:,.1f} a fact"
        )
    return f"{told}."
