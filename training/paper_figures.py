"""The paper's figures, to print beside ours: of other data and machines.

Kim and Jung, "Large Product Key Memory for Pretrained Language Models" (2020),
table 4, dev sets (medians of five seeds). Rows of both are never mixed.
"""

# Model: SQuAD EM, F1; MNLI matched, mismatched; QQP; QNLI; SST-2; CoLA.
_COLUMNS = (
    "exact_match",
    "f1",
    "mnli_matched",
    "mnli_mismatched",
    "qqp",
    "qnli",
    "sst2",
    "cola",
)
_ROWS = {
    "BERT-BASE": (82.7, 89.8, 84.3, 84.5, 91.0, 89.3, 92.8, 60.8),
    "BERT-BASE, 500k steps more": (
        83.3,
        90.1,
        84.8,
        84.9,
        91.2,
        89.2,
        92.4,
        61.4,
    ),
    "+PKM": (81.9, 89.1, 84.4, 85.0, 91.1, 89.0, 93.6, 59.7),
    "+ResM": (81.5, 89.4, 84.6, 84.8, 91.0, 88.2, 93.2, 62.8),
    "+Init+PKM": (83.8, 90.6, 85.8, 85.6, 91.2, 90.0, 93.6, 63.6),
    "+Init+ResM": (83.9, 90.8, 86.0, 85.8, 91.4, 90.4, 94.0, 64.1),
    "Google's BERT-BASE": (81.1, 88.5, 83.9, 84.4, 91.0, 88.4, 92.9, 59.8),
    "BERT-LARGE": (83.3, 90.6, 86.2, 86.1, 91.4, 90.4, 93.8, 64.1),
}
_TASKS = {
    "squad": {"dev exact match": "exact_match", "dev F1": "f1"},
    "mnli": {
        "dev_matched accuracy": "mnli_matched",
        "dev_mismatched accuracy": "mnli_mismatched",
    },
    "qqp": {"dev accuracy": "qqp"},
    "qnli": {"dev accuracy": "qnli"},
    "sst2": {"dev accuracy": "sst2"},
    "cola": {"dev Matthews correlation": "cola"},
}


def paper_figures(task: str) -> dict[str, dict[str, float]]:
    """Returns the paper's figures of a task, in percent.

    Args:
        task: As `--task` has it.

    Returns:
        For each of the paper's models a dict from our figures' names.
    """
    return {
        model: {
            name: row[_COLUMNS.index(column)]
            for name, column in _TASKS[task].items()
        }
        for model, row in _ROWS.items()
    }
