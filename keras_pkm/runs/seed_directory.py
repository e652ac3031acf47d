"""What one seed of a fine-tuning run leaves."""

import pathlib


class SeedDirectory:
    """What one seed of a fine-tuning run leaves.

    Args:
        root: The path of the directory.

    Attributes:
        results: The figures after each epoch, once all have ended.
        checkpoints: From these an unfinished seed goes on.
        best: The model of the best epoch, as a preset.
    """

    def __init__(self, root: pathlib.Path):
        self.root = root
        self.results = root / "results.json"
        self.checkpoints = root / "checkpoints"
        self.best = root / "best"
