"""Masked language modeling with `PKMRobertaBackbone`."""

import keras
import keras_hub

from keras_pkm.models.pkm_roberta_backbone import PKMRobertaBackbone
from keras_pkm.models.pkm_task import PKMMaskedLM


@keras.saving.register_keras_serializable("keras_pkm")
class PKMRobertaMaskedLM(PKMMaskedLM, keras_hub.models.RobertaMaskedLM):
    """`keras_hub.models.RobertaMaskedLM` for a backbone with memory.

    It behaves as that class does, and trains under `tf.distribute`, too; its
    head has the epsilon of the backbone's layer norms, as the original has.
    `keras_hub.models.MaskedLM.from_preset` gives this class for presets that
    hold a `keras_pkm.models.PKMRobertaBackbone`.

    Args:
        backbone: `keras_pkm.models.PKMRobertaBackbone`.
        preprocessor: `keras_hub.models.RobertaMaskedLMPreprocessor` or
            `None`, if inputs are preprocessed already. Defaults to `None`.

    Example:

    >>> backbone = keras_pkm.models.PKMRobertaBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=4,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ...     memory_layers=(2, 4),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ... )
    >>> masked_lm = keras_pkm.models.PKMRobertaMaskedLM(backbone)
    >>> features = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ...     "mask_positions": np.array([[3, 5], [2, 0]], "int32"),
    ... }
    >>> masked_lm(features).shape
    TensorShape([2, 2, 1000])
    """

    backbone_cls = PKMRobertaBackbone
    preprocessor_cls = keras_hub.models.RobertaMaskedLMPreprocessor
