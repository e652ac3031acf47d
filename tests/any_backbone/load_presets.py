"""Loads the backbones of presets in a process that made none of them.

    python load_presets.py DIRECTORY

runs each preset in the directory on its inputs.npz, and writes outputs.npz.
(Run by `matrix_test.py`.)
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))

import keras  # noqa: E402
import keras_hub  # noqa: E402
import numpy as np  # noqa: E402

import keras_pkm  # noqa: E402

for directory in pathlib.Path(sys.argv[1]).iterdir():
    backbone = keras_hub.models.Backbone.from_preset(str(directory))
    if not isinstance(backbone, keras_pkm.models.MemoryBackbone):
        raise TypeError(f"{directory.name}: {type(backbone).__name__}")
    inputs = dict(np.load(directory / "inputs.npz"))
    outputs = keras.tree.flatten(backbone(inputs))
    named = {str(number): np.asarray(y) for number, y in enumerate(outputs)}
    np.savez(directory / "outputs.npz", **named)
