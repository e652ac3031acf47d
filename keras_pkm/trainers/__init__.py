"""How tasks are trained: under tf.distribute, in parts, partly frozen."""
