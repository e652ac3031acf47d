"""What is compared: our layers, Keras' own, those of torch."""
