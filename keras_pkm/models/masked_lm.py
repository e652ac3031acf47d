"""Masked language modeling: predicts the tokens behind the masks."""

from typing import Any

import keras
import keras_hub

from keras_pkm.models.pkm_backbone import PKMBackbone
from keras_pkm.models.pkm_bert_backbone import PKMBertBackbone
from keras_pkm.models.pkm_distil_bert_backbone import PKMDistilBertBackbone
from keras_pkm.models.pkm_roberta_backbone import PKMRobertaBackbone
from keras_pkm.models.pkm_task import PKMTask


class PKMMaskedLM(PKMTask):
    """Base of masked-LM tasks.

    The head's layer norm gets the epsilon of the backbone's layer norms, as in
    the original models; keras-hub always gives it 1e-5.
    """

    def __init__(
        self,
        backbone: PKMBackbone,
        preprocessor: keras_hub.models.Preprocessor | None = None,
        **kwargs: Any,
    ):
        self.check_backbone(backbone)
        super().__init__(backbone, preprocessor=preprocessor, **kwargs)
        norm = self.masked_lm_head._intermediate_layer_norm
        norm.epsilon = backbone.layer_norm_epsilon


@keras.saving.register_keras_serializable("keras_pkm")
class PKMBertMaskedLM(PKMMaskedLM, keras_hub.models.BertMaskedLM):
    """`keras_hub.models.BertMaskedLM` for a backbone with memory.

    It behaves as that class does, but can also train under `tf.distribute`,
    and its head has the epsilon of the backbone's layer norms, as in BERT.
    `keras_hub.models.MaskedLM.from_preset` returns this class for presets that
    contain a `keras_pkm.models.PKMBertBackbone`.

    Args:
        backbone: `keras_pkm.models.PKMBertBackbone`.
        preprocessor: `keras_hub.models.BertMaskedLMPreprocessor`, or `None` if
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


@keras.saving.register_keras_serializable("keras_pkm")
class PKMDistilBertMaskedLM(PKMMaskedLM, keras_hub.models.DistilBertMaskedLM):
    """`keras_hub.models.DistilBertMaskedLM` for a backbone with memory.

    See `keras_pkm.models.PKMBertMaskedLM`. Unlike that class, this one has no
    input `segment_ids`.
    """

    backbone_cls = PKMDistilBertBackbone
    preprocessor_cls = keras_hub.models.DistilBertMaskedLMPreprocessor


@keras.saving.register_keras_serializable("keras_pkm")
class PKMRobertaMaskedLM(PKMMaskedLM, keras_hub.models.RobertaMaskedLM):
    """`keras_hub.models.RobertaMaskedLM` for a backbone with memory.

    See `keras_pkm.models.PKMBertMaskedLM`. Unlike that class, this one has no
    input `segment_ids`.
    """

    backbone_cls = PKMRobertaBackbone
    preprocessor_cls = keras_hub.models.RobertaMaskedLMPreprocessor
