"""Results of metrics as Python numbers."""

import keras
from keras import ops


def result_numbers(metric: keras.metrics.Metric) -> dict[str, float]:
    """Returns the result of a metric, a dict, as Python numbers.

    Counts are exact integers, which the metric has as `totals`. In its result
    they are floats, which may be rounded.
    """
    figures = {
        name: ops.convert_to_numpy(value).item()
        for name, value in metric.result().items()
    }
    return {**figures, **getattr(metric, "totals", {})}
