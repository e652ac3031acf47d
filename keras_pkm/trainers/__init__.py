"""Training of tasks: tf.distribute, gradient accumulation, freezing."""
