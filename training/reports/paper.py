"""The paper's figures, which are printed beside ours.

They are from Kim and Jung, "Large Product Key Memory for Pretrained Language
Models" (2020), on dev sets and held-out text, with other data and machines than
ours.
"""

from training.reports.markdown import markdown_table

_TASKS = {
    "squad": ("dev exact match", "dev F1"),
    "mnli": ("dev_matched accuracy", "dev_mismatched accuracy"),
    "qqp": ("dev accuracy",),
    "qnli": ("dev accuracy",),
    "sst2": ("dev accuracy",),
    "cola": ("dev matthews_correlation",),
}
_BERT = {
    "BERT-BASE": "82.7/89.8 84.3/84.5 91.0 89.3 92.8 60.8",
    "BERT-BASE, 500k steps more": "83.3/90.1 84.8/84.9 91.2 89.2 92.4 61.4",
    "+PKM": "81.9/89.1 84.4/85.0 91.1 89.0 93.6 59.7",
    "+ResM": "81.5/89.4 84.6/84.8 91.0 88.2 93.2 62.8",
    "+Init+PKM": "83.8/90.6 85.8/85.6 91.2 90.0 93.6 63.6",
    "+Init+ResM": "83.9/90.8 86.0/85.8 91.4 90.4 94.0 64.1",
    "Google's BERT-BASE": "81.1/88.5 83.9/84.4 91.0 88.4 92.9 59.8",
    "BERT-LARGE": "83.3/90.6 86.2/86.1 91.4 90.4 93.8 64.1",
}
_BERT_FROZEN = {
    "+PKM, memory frozen": "82.0/89.0 84.1/- - - 93.0 56.5",
    "+ResM, memory frozen": "82.2/89.5 84.3/- - - 92.7 59.9",
    "+Init+PKM, memory frozen": "83.7/90.4 85.5/- - - 93.3 58.8",
    "+Init+ResM, memory frozen": "84.2/90.8 85.8/- - - 93.3 61.6",
}
_DISTILBERT = {
    "DistilBERT": "77.4/85.7 82.0/- - - 91.6 -",
    "DistilBERT+Init+ResM": "80.4/88.3 84.1/- - - 93.3 -",
}
# The number of the table, its rows, and whether they are for DistilBERT.
_TABLES = (
    (4, _BERT, False),
    (5, _BERT_FROZEN, False),
    (7, _DISTILBERT, True),
)

# Perplexity on WikiText-2, WikiText-103 and PG-19; then, for layers 4 and 8,
# top-1 usage in percent, KL_u and KL_w.
_MASKED_LM = {
    "BERT-BASE": "3.49 3.86 6.18 - - -",
    "BERT-BASE, 500k steps more": "3.40 3.72 5.88 - - -",
    "+PKM": "3.26 3.39 5.53 2.2/84.1 1.62/0.89 1.99/1.13",
    "+ResM": "3.26 3.36 5.45 75.0/81.0 1.50/0.71 1.80/0.92",
    "+Init+PKM": "3.14 3.26 5.22 97.4/95.7 0.53/0.69 0.68/0.88",
    "+Init+ResM": "3.10 3.20 5.14 98.2/97.3 0.45/0.46 0.58/0.60",
    "DistilBERT": "- - 20.61 - - -",
    "DistilBERT+Init+ResM": "- - 5.75 - - -",
}


def paper_masked_lm() -> dict[str, str]:
    """Returns the paper's figures of masked language models (table 2).

    They are text, by model: perplexities on WikiText-2, WikiText-103 and PG-19;
    then top-1 usage in percent, KL_u and KL_w of layers 4 and 8.
    """
    return dict(_MASKED_LM)


def paper_memory_usage() -> dict[str, dict[int, tuple[str, str, str]]]:
    """Returns the paper's top-1 usage in percent, KL_u and KL_w (table 2).

    They are text, as printed in the paper, by model and layer.
    """
    return {
        model: dict(
            zip((4, 8), zip(*(cell.split("/") for cell in row.split()[3:])))
        )
        for model, row in _MASKED_LM.items()
        if "/" in row
    }


def paper_figures(task: str, family: str, frozen: bool) -> dict:
    """Returns the paper's figures of a task, in percent."""
    column = list(_TASKS).index(task)
    result = {}
    for number, rows, is_distilbert in _TABLES:
        if is_distilbert != (family == "distilbert"):
            continue
        if number == 5 and not frozen:
            continue
        for model, row in rows.items():
            cells = row.split()[column].split("/")
            figures = {
                name: float(cell)
                for name, cell in zip(_TASKS[task], cells)
                if cell != "-"
            }
            if figures:
                result[model] = {"table": number, "figures": figures}
    return result


def format_paper_perplexities() -> str:
    """Returns the paper's perplexities and memory usage as Markdown."""
    table = markdown_table(
        [
            *("the paper's", "WikiText-2", "WikiText-103", "PG-19"),
            *("top-1 used %, layers 4/8", "KL_u", "KL_w"),
        ],
        [[model, *row.split()] for model, row in _MASKED_LM.items()],
    )
    return (
        f"{table}\n\nThe paper's rows are its own (tables 2 and 7), of other "
        "models, another vocabulary and other masks."
    )
