from training.fitting.logs import ShortProgress


def test_two_means_are_left():
    logs = {"loss": 1.0, "val_perplexity": 9.0}
    for layer, value in ((4, 0.25), (8, 0.75)):
        for name in ("mu", "top1_mu", "stale", "never"):
            logs[f"memory_{layer}_{name}"] = value
    ShortProgress().on_epoch_end(0, logs)
    assert logs == {
        "loss": 1.0,
        "val_perplexity": 9.0,
        "memory_top1_used": 0.5,
        "memory_stale": 0.5,
    }
    plain = {"loss": 1.0}
    ShortProgress().on_epoch_end(0, plain)
    assert plain == {"loss": 1.0}
