"""Text classification: a class for each text or pair of texts."""

from typing import Any

import keras
import keras_hub

from keras_pkm.models.checkpoint_readers import CheckpointReader
from keras_pkm.models.pkm_backbone import PKMBackbone
from keras_pkm.models.pkm_bert_backbone import PKMBertBackbone
from keras_pkm.models.pkm_distil_bert_backbone import PKMDistilBertBackbone
from keras_pkm.models.pkm_roberta_backbone import PKMRobertaBackbone
from keras_pkm.models.pkm_task import PKMTask
from keras_pkm.ops.arguments import fraction
from keras_pkm.ops.arguments import positive_int


class PKMTextClassifier(PKMTask):
    """Base of text classifiers."""

    def __init__(
        self,
        backbone: PKMBackbone,
        num_classes: int,
        preprocessor: keras_hub.models.Preprocessor | None = None,
        **kwargs: Any,
    ):
        self.check_backbone(backbone)
        num_classes = positive_int("num_classes", num_classes)
        if "dropout" in kwargs:
            kwargs["dropout"] = fraction("dropout", kwargs["dropout"])
        super().__init__(
            backbone, num_classes, preprocessor=preprocessor, **kwargs
        )

    @classmethod
    def _checkpoint_config(
        cls, reader: CheckpointReader, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        return reader.classifier_config(**arguments)


@keras.saving.register_keras_serializable("keras_pkm")
class PKMBertTextClassifier(
    PKMTextClassifier, keras_hub.models.BertTextClassifier
):
    """`keras_hub.models.BertTextClassifier` for a backbone with memory.

    It behaves as that class does, but can also train under `tf.distribute`.
    `keras_hub.models.TextClassifier.from_preset` returns this class for presets
    that contain a `keras_pkm.models.PKMBertBackbone`.

    Args:
        backbone: `keras_pkm.models.PKMBertBackbone`.
        num_classes: int. The number of classes.
        preprocessor: `keras_hub.models.BertTextClassifierPreprocessor`, or
            `None` if inputs are preprocessed already. Defaults to `None`.
        **kwargs: further arguments of `keras_hub.models.BertTextClassifier`:
            `activation`, `dropout`.

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
    >>> classifier = keras_pkm.models.PKMBertTextClassifier(
    ...     backbone, num_classes=2
    ... )
    >>> features = {
    ...     "token_ids": np.ones((3, 12), "int32"),
    ...     "segment_ids": np.zeros((3, 12), "int32"),
    ...     "padding_mask": np.ones((3, 12), "int32"),
    ... }
    >>> classifier(features).shape
    TensorShape([3, 2])
    """

    backbone_cls = PKMBertBackbone
    preprocessor_cls = keras_hub.models.BertTextClassifierPreprocessor


@keras.saving.register_keras_serializable("keras_pkm")
class PKMDistilBertTextClassifier(
    PKMTextClassifier, keras_hub.models.DistilBertTextClassifier
):
    """`keras_hub.models.DistilBertTextClassifier` for a backbone with memory.

    See `keras_pkm.models.PKMBertTextClassifier`. Unlike that class, this one
    has no input `segment_ids`.
    """

    backbone_cls = PKMDistilBertBackbone
    preprocessor_cls = keras_hub.models.DistilBertTextClassifierPreprocessor


@keras.saving.register_keras_serializable("keras_pkm")
class PKMRobertaTextClassifier(
    PKMTextClassifier, keras_hub.models.RobertaTextClassifier
):
    """`keras_hub.models.RobertaTextClassifier` for a backbone with memory.

    See `keras_pkm.models.PKMBertTextClassifier`. Unlike that class, this one
    has no input `segment_ids`.
    """

    backbone_cls = PKMRobertaBackbone
    preprocessor_cls = keras_hub.models.RobertaTextClassifierPreprocessor
