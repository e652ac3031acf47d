"""The train step of a task on torch."""

from typing import Any

import torch

from keras_pkm.trainers.default_optimizer import count_applied
from keras_pkm.trainers.task import Task
from keras_pkm.trainers.task import moving_statistics


class Steps(Task):
    """Mixin for KerasHub's tasks: their train step on torch."""

    def train_step(self, data: Any) -> dict[str, Any]:
        statistics = moving_statistics(self)
        before = [each.value.detach().clone() for each in statistics]
        step = int(count_applied(self.optimizer))
        logs = super().train_step(data)
        if int(count_applied(self.optimizer)) == step:
            with torch.no_grad():
                for variable, old in zip(statistics, before):
                    variable.assign(old)
        return logs
