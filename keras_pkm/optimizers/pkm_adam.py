"""Adam with a separate learning rate and a row-sparse rule for memories."""

from collections.abc import Callable
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_pkm.ops.arguments import finite
from keras_pkm.ops.arguments import finite_or_none
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import one_of
from keras_pkm.ops.backend import backend
from keras_pkm.ops.tensors import Gradient
from keras_pkm.ops.tensors import Tensor
from keras_pkm.optimizers.gradients import all_finite
from keras_pkm.optimizers.gradients import clip
from keras_pkm.optimizers.memory_rate import Schedule
from keras_pkm.optimizers.memory_rate import check_memory_rate
from keras_pkm.optimizers.memory_rate import check_rate
from keras_pkm.optimizers.memory_rate import parse_multiple
from keras_pkm.optimizers.memory_rate import serialize_rate
from keras_pkm.optimizers.row_rules import RULES
from keras_pkm.optimizers.row_rules import adam_rule
from keras_pkm.optimizers.row_rules import sgd_rule
from keras_pkm.optimizers.variable_groups import NotDecayed
from keras_pkm.optimizers.variable_groups import group_variables

# Arguments of Keras' Adam that have no row-sparse version.
_UNSUPPORTED = (
    "amsgrad",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "gradient_accumulation_steps",
    "loss_scale_factor",
)


class _Kept:
    """The optimizer's own variables, by the id of the variable that they serve.

    TensorFlow would follow dicts of the optimizer itself when it saves a model,
    and cannot save those whose keys are numbers.
    """

    def __init__(self) -> None:
        self.moments: dict[int, tuple[keras.Variable, ...]] = {}
        self.chosen: dict[int, keras.Variable] = {}


@keras.saving.register_keras_serializable("keras_pkm")
class PKMAdam(keras.optimizers.Adam):
    """Adam that trains the values of memories row by row.

    All variables but the value tables, which `keras_pkm.layers.ValueTable`
    marks, follow `keras.optimizers.Adam`. The value tables have their own
    learning rate, and a step updates only the rows that the batch read:

        m[rows] ← β₁ m[rows] + (1 - β₁) g
        v[rows] ← β₂ v[rows] + (1 - β₂) g²
        values[rows] ← values[rows] - α m[rows] / (√v[rows] + ε)

    with Adam's α = rate · √(1 - β₂ᵗ) / (1 - β₁ᵗ) at the global step t. All
    other rows of values, m and v are unchanged, bit for bit, and cost no time
    except on JAX. (Adam moves all rows at each step, by their momentum.) A row
    counts as read if its gradient, summed over all replicas, has a nonzero
    entry.

    Gradients are clipped after repeated rows and all replicas have been summed.
    A step at which any replica has a gradient that is not finite is skipped on
    all of them: no variable changes, except by its constraint, and `iterations`
    does not advance.

    Args:
        learning_rate: float, schedule, or function without arguments that
            returns the rate, for all but the value tables. Defaults to `1e-4`.
        memory_learning_rate: likewise, for the value tables; or a multiple of
            `learning_rate`, such as `"10x"`, which follows when callbacks
            change that. Defaults to `1e-3`, the paper's rate for 500,000 steps;
            in a few thousand steps, `1e-2` or `3e-2` stores far more.
        beta_1, beta_2: floats. Default to `0.9` and `0.999`.
        epsilon: float. Defaults to `1e-7`.
        weight_decay: optional float. Decoupled weight decay, that of AdamW. It
            never touches value tables, biases, and variables of fewer than two
            axes, such as the parameters of norms.
        clipnorm: optional float. Clips the norm of each variable's gradient.
        clipvalue: optional float. Clips each entry of the gradients.
        global_clipnorm: optional float. Clips the norm of all gradients
            together.
        reduction: `"sparse"` or `"dense"`. How the value tables' gradients are
            summed over replicas: `"sparse"` sends the rows that each replica
            read; `"dense"` sends the whole table, which is less if all replicas
            together read more rows than it has. Defaults to `"sparse"`.
        memory_rule: `"adam"`, or `"sgd"` for values ← values - rate · g,
            which forgets less when a trained model is taught new facts
            (Lin et al., 2025). Defaults to `"adam"`.
        only_chosen_slots: bool. Whether to train only the slots given to
            `choose_slots`, and none before that call. All other rows of values
            are unchanged, bit for bit. Defaults to `False`.
        second_moment: `"entry"`, or `"row"` for one v per row of a value table:
            the moving average of the row's mean g². It takes `num_slots` floats
            instead of `num_slots · value_dim`. Defaults to `"entry"`.
        bias_correction: `"global"`, or `"row"` for one t per row of a value
            table: the number of steps that read the row, which takes
            `num_slots` more floats. A row that is first read late in training
            then moves by 3.2 times the learning rate with the global t, and by
            the learning rate with its own. Defaults to `"global"`.
        name: str. Defaults to `"pkm_adam"`.

    Example:

    >>> optimizer = keras_pkm.optimizers.PKMAdam(
    ...     learning_rate=keras_pkm.optimizers.LinearWarmup(
    ...         1e-4, warmup_steps=10_000, total_steps=500_000
    ...     ),
    ...     memory_learning_rate=1e-3,
    ... )

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881), section 4.1
    - [Lample et al., 2019](https://arxiv.org/abs/1907.05242), section 4.1
    - [Kingma and Ba, 2014](https://arxiv.org/abs/1412.6980)
    - [Lin et al., 2025](https://arxiv.org/abs/2510.15103)
    """

    def __init__(
        self,
        learning_rate: float | Schedule | Callable[[], Any] = 1e-4,
        memory_learning_rate: float | str | Schedule | Callable[[], Any] = 1e-3,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        reduction: str = "sparse",
        memory_rule: str = "adam",
        only_chosen_slots: bool = False,
        second_moment: str = "entry",
        bias_correction: str = "global",
        name: str = "pkm_adam",
        **kwargs: Any,
    ):
        _refuse(kwargs)
        super().__init__(
            learning_rate=check_rate("learning_rate", learning_rate),
            beta_1=fraction("beta_1", beta_1),
            beta_2=fraction("beta_2", beta_2),
            epsilon=finite("epsilon", epsilon, least=0),
            weight_decay=finite_or_none("weight_decay", weight_decay, least=0),
            clipnorm=finite_or_none("clipnorm", clipnorm, least=0),
            clipvalue=finite_or_none("clipvalue", clipvalue, least=0),
            global_clipnorm=finite_or_none(
                "global_clipnorm", global_clipnorm, least=0
            ),
            name=name,
        )
        self.reduction = one_of("reduction", reduction, ("sparse", "dense"))
        self.memory_rule = one_of("memory_rule", memory_rule, RULES)
        self.only_chosen_slots = bool(only_chosen_slots)
        self.second_moment = one_of(
            "second_moment", second_moment, ("entry", "row")
        )
        self.bias_correction = one_of(
            "bias_correction", bias_correction, ("global", "row")
        )
        rate = check_memory_rate(memory_learning_rate)
        if isinstance(rate, float):
            rate = self.add_variable(
                (),
                keras.initializers.Constant(rate),
                "float32",
                aggregation="only_first_replica",
                name="memory_learning_rate",
            )
        self._memory_learning_rate = rate
        self._not_decayed = NotDecayed()
        # By the id of the variable.
        self._decayed: set[int] = set()
        self._tables: set[int] = set()
        self._kept = _Kept()

    @property
    def memory_learning_rate(self) -> keras.Variable | Tensor:
        """The value tables' learning rate at the current step."""
        rate = self._memory_learning_rate
        if (multiple := parse_multiple(rate)) is not None:
            return self.learning_rate * multiple
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            return rate(self.iterations)
        return rate() if callable(rate) else rate

    @memory_learning_rate.setter
    def memory_learning_rate(self, rate: float) -> None:
        if not isinstance(self._memory_learning_rate, keras.Variable):
            raise TypeError(
                "`memory_learning_rate` is a schedule, a function, or a "
                "multiple, and cannot be set: create the optimizer with a "
                "float instead."
            )
        self._memory_learning_rate.assign(
            finite("memory_learning_rate", rate, least=0)
        )

    def build(self, variables: Sequence[keras.Variable]) -> None:
        if self.built:
            return
        _check_dtypes(variables)
        groups = group_variables(
            variables,
            self._not_decayed if self.weight_decay is not None else None,
        )
        self._decayed = set(map(id, groups["decayed"]))
        self._tables = set(map(id, groups["memory"]))
        super().build(variables)
        for values in groups["memory"]:
            if self.bias_correction == "row":
                steps = self.add_variable_from_reference(values, "steps")
                self._kept.moments[id(values)] += (steps,)
            if self.only_chosen_slots:
                self._kept.chosen[id(values)] = self.add_variable(
                    values.shape[:1],
                    dtype="bool",
                    aggregation="only_first_replica",
                    name="chosen_slots",
                )

    def add_variable_from_reference(
        self,
        reference_variable: keras.Variable,
        name: str | None = None,
        initializer: Any = "zeros",
    ) -> keras.Variable:
        is_column = name == "steps" or (
            name == "velocity" and self.second_moment == "row"
        )
        if not (is_column and id(reference_variable) in self._tables):
            return super().add_variable_from_reference(
                reference_variable, name, initializer
            )
        return self.add_variable(
            (reference_variable.shape[0], 1),
            initializer,
            reference_variable.dtype,
            name=f"{reference_variable.path.replace('/', '_')}_{name}",
        )

    def add_optimizer_variables(
        self,
        trainable_variables: Sequence[keras.Variable],
        name: str | Sequence[str],
        initializer: Any = "zeros",
    ) -> Any:
        added = super().add_optimizer_variables(
            trainable_variables, name, initializer
        )
        # Adam asks for momentums and velocities at once.
        ids = map(id, trainable_variables)
        self._kept.moments = dict(zip(ids, zip(*added), strict=True))
        return added

    def choose_slots(
        self, values: keras.Variable, slots: Sequence[int] | np.ndarray
    ) -> None:
        """Chooses the slots of a memory to train, replacing earlier choices.

        Args:
            values: the values of a table, `memory.table.values`.
            slots: integers, the slots' numbers.

        Raises:
            ValueError: the optimizer chooses no slots or is not built, or a
                number is out of range.
        """
        chosen = self._kept.chosen.get(id(values))
        if chosen is None:
            raise ValueError(
                "`values` must be a value table of an optimizer that was made "
                "with `only_chosen_slots=True` and has been built. Received: "
                f"values={values.path!r}."
            )
        (num_slots,) = chosen.shape
        slots = np.asarray(slots)
        if slots.size and (
            slots.dtype.kind not in "iu"
            or slots.min() < 0
            or slots.max() >= num_slots
        ):
            raise ValueError(
                f"`slots` must be integers from 0 to {num_slots - 1}, the "
                f"slots of this memory. Received: {slots!r}."
            )
        mask = np.zeros(num_slots, "bool")
        mask[slots.astype("int64")] = True
        chosen.assign(mask)

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[keras.Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        if self.built:
            raise ValueError(
                "`exclude_from_weight_decay` must be called before the "
                "optimizer is built. Received: a call after it, which would "
                "exclude nothing. Call it before `compile` and `fit`."
            )
        super().exclude_from_weight_decay(var_list, var_names)
        self._not_decayed = NotDecayed(var_list or (), var_names or ())

    @backend.uncompiled
    def _backend_apply_gradients(
        self, grads: list[Gradient], trainable_variables: list[keras.Variable]
    ) -> None:
        """Sums over replicas, clips, and updates if all gradients are finite.

        Keras clips before it sums, so that two devices give another result
        than one. All replicas have the same sums, and so decide alike.
        """
        grads = backend.reduce_gradients(
            grads,
            [id(variable) in self._tables for variable in trainable_variables],
            self.reduction,
        )
        is_finite = all_finite(grads)
        grads = clip(
            list(map(self._keep_chosen, trainable_variables, grads)),
            self.clipnorm,
            self.global_clipnorm,
            self.clipvalue,
        )
        backend.update_if(
            is_finite,
            self._update,
            trainable_variables,
            grads,
            ops.convert_to_tensor(self.learning_rate),
            self.variables,
        )
        # `apply` counts every call, but a skipped step does not count.
        skipped = ops.logical_not(is_finite)
        self._iterations.assign_sub(ops.cast(skipped, self._iterations.dtype))

    def _keep_chosen(
        self, variable: keras.Variable, gradient: Gradient
    ) -> Gradient:
        # The update treats a row whose gradient is zero as not read.
        chosen = self._kept.chosen.get(id(variable))
        return (
            gradient if chosen is None else backend.keep_rows(gradient, chosen)
        )

    def _update(
        self,
        variable: keras.Variable,
        component: Any,
        gradient: Gradient,
        learning_rate: Tensor,
    ) -> None:
        key = id(variable)
        if key in self._tables:
            self._update_table(key, component, gradient)
            return
        if key in self._decayed:
            rate = ops.cast(learning_rate, variable.dtype)
            component.assign_sub(component * (self.weight_decay * rate))
        self.update_step(gradient, component, learning_rate)

    def _update_table(
        self, key: int, component: Any, gradient: Gradient
    ) -> None:
        rate = ops.cast(self.memory_learning_rate, "float32")
        if self.memory_rule == "sgd":
            backend.update_rows((component,), gradient, sgd_rule(rate))
            return
        steps = None
        if self.bias_correction == "global":
            steps = ops.cast(self.iterations + 1, "float32")
        rule = adam_rule(rate, steps, self.beta_1, self.beta_2, self.epsilon)
        backend.update_rows(
            (component, *self._kept.moments[key]), gradient, rule
        )

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        for name in _UNSUPPORTED:
            config.pop(name, None)
        rate = self._memory_learning_rate
        return {
            **config,
            "memory_learning_rate": serialize_rate(rate),
            "reduction": self.reduction,
            "memory_rule": self.memory_rule,
            "only_chosen_slots": self.only_chosen_slots,
            "second_moment": self.second_moment,
            "bias_correction": self.bias_correction,
        }


def _check_dtypes(variables: Sequence[keras.Variable]) -> None:
    """Checks that steps are not lost in the rounding of variables."""
    for variable in variables:
        if variable.dtype in ("float16", "bfloat16"):
            raise ValueError(
                "`PKMAdam` must train variables of float32: half precision "
                "loses its steps in rounding, and in bfloat16, where "
                "β₂ = 0.999 is 1, all of them. Received: "
                f"'{variable.path}' of {variable.dtype}. Make the model with "
                f"the dtype policy 'mixed_{variable.dtype}', or freeze the "
                "variable."
            )


def _refuse(arguments: dict[str, Any]) -> None:
    """Raises an error if there are any arguments left.

    Args:
        arguments: The arguments that the constructor does not take.

    Raises:
        ValueError: Keras' gradient accumulation is requested, which
            `accumulation_steps` of tasks replaces.
        TypeError: another argument was given.
    """
    if "gradient_accumulation_steps" in arguments:
        raise ValueError(
            "`gradient_accumulation_steps` must be left out: Keras would keep "
            "a dense gradient as large as each table. Received: "
            "gradient_accumulation_steps="
            f"{arguments['gradient_accumulation_steps']}. Set "
            "`accumulation_steps` of a task of `keras_pkm.models` instead, on "
            "TensorFlow."
        )
    if arguments:
        raise TypeError(f"`PKMAdam` has no argument {', '.join(arguments)}.")
