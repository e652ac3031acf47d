"""The train step of a task on JAX."""

from typing import Any

from keras import ops

from keras_pkm.trainers.default_optimizer import count_applied
from keras_pkm.trainers.task import Task
from keras_pkm.trainers.task import moving_statistics


class Steps(Task):
    """Mixin for KerasHub's tasks: their train step on JAX."""

    def train_step(self, state: Any, data: Any) -> tuple[dict[str, Any], Any]:
        logs, new_state = super().train_step(state, data)
        statistics = {id(each) for each in moving_statistics(self)}
        applied = count_applied(self.optimizer)
        (place,) = (
            number
            for number, variable in enumerate(self.optimizer.variables)
            if variable is applied
        )
        _, old, optimizer, _ = state
        trainable, new, new_optimizer, metrics = new_state
        skipped = ops.equal(optimizer[place], new_optimizer[place])
        new = [
            ops.where(skipped, *values)
            if id(variable) in statistics
            else values[1]
            for variable, values in zip(
                self.non_trainable_variables, zip(old, new)
            )
        ]
        return logs, (trainable, new, new_optimizer, metrics)
