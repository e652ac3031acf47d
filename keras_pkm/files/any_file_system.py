"""Writes files on every file system that TensorFlow can write to."""

import contextlib
import os

import tensorflow as tf

from keras_pkm.files.whole_files import partial_name


def write_whole_anywhere(path: str, text: str) -> None:
    """Writes a text file, whole or not at all.

    Raises:
        tf.errors.OpError: it cannot be written.
    """
    folder, name = os.path.split(path)
    partial = os.path.join(folder, partial_name(name))
    try:
        with tf.io.gfile.GFile(partial, "w") as file:
            file.write(text)
        tf.io.gfile.rename(partial, path, overwrite=True)
    except tf.errors.OpError:
        with contextlib.suppress(tf.errors.OpError):
            tf.io.gfile.remove(partial)
        raise
