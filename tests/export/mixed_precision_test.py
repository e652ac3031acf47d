"""What was trained in half precision is exported whole."""

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from export.saved_model import main


@pytest.mark.slow
def test_bfloat16(tiny_run, tmp_path):
    assert tiny_run.files.read_recipe()["precision"] == "mixed_bfloat16"
    check_that_preset_and_export_agree(tiny_run.files, tmp_path / "out")


def check_that_preset_and_export_agree(run, out):
    args = f"--model {run.root} --what encoder --out {out}"
    assert main(args.split()) == 0
    model = tf.saved_model.load(str(out))
    task = keras_hub.models.MaskedLM.from_preset(str(run.best))
    x = {
        "token_ids": np.array([[2, 7, 8, 9, 3]], "int32"),
        "padding_mask": np.array([[1, 1, 1, 1, 0]], "int32"),
        "segment_ids": np.zeros((1, 5), "int32"),
    }
    found = model(
        {
            "input_word_ids": tf.constant(x["token_ids"]),
            "input_mask": tf.constant(x["padding_mask"]),
            "input_type_ids": tf.constant(x["segment_ids"]),
        }
    )
    expected = task.backbone(x)
    for name in ("sequence_output", "pooled_output"):
        assert found[name].dtype == "float32"
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)
