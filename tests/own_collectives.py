"""Collective operations of several strategies in one process."""

import tensorflow as tf


def use_own_collectives() -> None:
    """Gives the next `MirroredStrategy` keys that no earlier one has.

    All of a process have the same keys by default, so that the shapes of one
    are held against those of another. TensorFlow's own tests do the same.
    """
    tf.distribute.MirroredStrategy._collective_key_base += 1000
