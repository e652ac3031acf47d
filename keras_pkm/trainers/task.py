"""The base of mixins for tasks."""

from typing import TYPE_CHECKING
from typing import TypeAlias

import keras

# For type checkers a mixin is a model: it calls methods of the task that
# follows it in the list of bases.
if TYPE_CHECKING:
    Task: TypeAlias = keras.Model
else:
    Task = object
