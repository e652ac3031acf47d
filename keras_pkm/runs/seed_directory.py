"""The files of one seed of a fine-tuning run."""

import pathlib


class SeedDirectory:
    """The files of one seed of a fine-tuning run.

    Args:
        root: The path of the directory.

    Attributes:
        results: The figures after each epoch, written after the last one.
        checkpoints: The checkpoints for resuming an unfinished seed.
        best: The model of the best epoch, as a preset.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.results = root / "results.json"
        self.checkpoints = root / "checkpoints"
        self.best = root / "best"
