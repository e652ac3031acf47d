"""Results of metrics as Python numbers."""

import keras


def result_numbers(metric: keras.metrics.Metric) -> dict[str, float]:
    """Returns the result of a metric, a dict, as Python numbers."""
    return {
        name: value.numpy().item() for name, value in metric.result().items()
    }
