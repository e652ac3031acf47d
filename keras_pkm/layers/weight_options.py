"""Initializer, regularizer and constraint of a layer's weight."""

import dataclasses
from typing import Any

import keras


@dataclasses.dataclass(frozen=True)
class WeightOptions:
    """The options that Keras layers offer for each weight.

    Attributes:
        initializer: `keras.initializers.Initializer`, or `None` for the
            layer's default.
        regularizer: `keras.regularizers.Regularizer` or `None`.
        constraint: `keras.constraints.Constraint` or `None`.
    """

    initializer: keras.initializers.Initializer | None
    regularizer: keras.regularizers.Regularizer | None
    constraint: keras.constraints.Constraint | None

    @classmethod
    def of(
        cls, initializer: Any, regularizer: Any, constraint: Any
    ) -> "WeightOptions":
        """Makes options of names, configurations or objects, as Keras does."""
        return cls(
            None
            if initializer is None
            else keras.initializers.get(initializer),
            keras.regularizers.get(regularizer),
            keras.constraints.get(constraint),
        )

    def arguments(
        self, default: keras.initializers.Initializer
    ) -> dict[str, Any]:
        """Returns the arguments for `add_weight`.

        Args:
            default: The initializer to use if none was chosen.
        """
        return {
            "initializer": self.initializer or default,
            "regularizer": self.regularizer,
            "constraint": self.constraint,
        }

    def config(self, weight: str) -> dict[str, Any]:
        """Returns the entries of a layer's configuration.

        Args:
            weight: The prefix of the arguments' names.
        """
        return {
            f"{weight}_{name}": value
            and keras.saving.serialize_keras_object(value)
            for name, value in vars(self).items()
        }
