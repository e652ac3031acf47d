"""Logs the figures of each epoch in a CSV file, also in resumed runs."""

import csv
import pathlib

import keras


class EpochLog(keras.callbacks.Callback):
    """Adds a row with the figures of each epoch to a CSV file.

    The first row defines the columns, also after a run is resumed. (Keras' own
    `CSVLogger` uses the columns of the first epoch after the restart, without a
    header. If they are different, values end up in the wrong columns.)
    """

    def __init__(self, path: pathlib.Path):
        super().__init__()
        self.path = path

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        row = {"epoch": epoch, **(logs or {})}
        columns = self._read_columns()
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file, columns or list(row), restval="", extrasaction="ignore"
            )
            if not columns:
                writer.writeheader()
            writer.writerow(row)

    def _read_columns(self) -> list[str]:
        if not self.path.exists():
            return []
        with open(self.path, newline="", encoding="utf-8") as file:
            return next(csv.reader(file), [])
