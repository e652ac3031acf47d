from training.fitting.logs import EpochLog
from training.pretraining.logs import read_rows


def test_a_resumed_run_keeps_the_columns(tmp_path):
    """Steps may be skipped before a restart only, or after it only."""
    path = tmp_path / "log.csv"
    EpochLog(path).on_epoch_end(0, {"loss": 2.5, "val_perplexity": 9.0})
    again = EpochLog(path)
    again.on_epoch_end(
        1, {"loss": 2.0, "skipped_steps": 4, "val_perplexity": 8.0}
    )
    again.on_epoch_end(2, {"loss": 1.5})
    assert read_rows(path, "epoch") == [
        {"epoch": "0", "loss": "2.5", "val_perplexity": "9.0"},
        {"epoch": "1", "loss": "2.0", "val_perplexity": "8.0"},
        {"epoch": "2", "loss": "1.5", "val_perplexity": ""},
    ]
