"""Arguments of Keras' Adam that have no row-sparse version."""

from typing import Any

UNSUPPORTED = (
    "amsgrad",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "gradient_accumulation_steps",
    "loss_scale_factor",
)


def refuse(arguments: dict[str, Any]) -> None:
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
