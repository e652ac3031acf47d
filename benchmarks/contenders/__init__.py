"""The implementations that are compared: ours, Keras', and torch's."""
