"""Masked language modeling with `PKMBertBackbone`."""

import keras
import keras_hub

from keras_pkm.models.pkm_bert_backbone import PKMBertBackbone
from keras_pkm.models.pkm_task import PKMMaskedLM


@keras.saving.register_keras_serializable("keras_pkm")
class PKMBertMaskedLM(PKMMaskedLM, keras_hub.models.BertMaskedLM):
    """`keras_hub.models.BertMaskedLM` for a backbone with memory.

    It behaves as that class does, and trains under `tf.distribute`, too; its
    head has the epsilon of the backbone's layer norms, as the original has.
    `keras_hub.models.MaskedLM.from_preset` gives this class for presets that
    hold a `keras_pkm.models.PKMBertBackbone`.

    Args:
        backbone: `keras_pkm.models.PKMBertBackbone`.
        preprocessor: `keras_hub.models.BertMaskedLMPreprocessor` or `None`, if
            inputs are preprocessed already. Defaults to `None`.

    Example:

    >>> backbone = keras_pkm.models.PKMBertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=4,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ...     memory_layers=(2, 4),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ... )
    >>> masked_lm = keras_pkm.models.PKMBertMaskedLM(backbone)
    >>> features = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "segment_ids": np.zeros((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ...     "mask_positions": np.array([[3, 5], [2, 0]], "int32"),
    ... }
    >>> masked_lm(features).shape
    TensorShape([2, 2, 1000])
    """

    backbone_cls = PKMBertBackbone
    preprocessor_cls = keras_hub.models.BertMaskedLMPreprocessor
