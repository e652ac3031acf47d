"""Extractive question answering: finds the answer in a paragraph."""

from typing import Any

import keras
import keras_hub

from keras_pkm.models.question_answerer_preprocessor import (
    BertQuestionAnswererPreprocessor,
)
from keras_pkm.models.question_answerer_preprocessor import (
    DistilBertQuestionAnswererPreprocessor,
)
from keras_pkm.models.question_answerer_preprocessor import (
    RobertaQuestionAnswererPreprocessor,
)
from keras_pkm.ops.arguments import only_known
from keras_pkm.trainers.task_training import TaskTraining


@keras.saving.register_keras_serializable("keras_pkm")
class QuestionAnswerer(TaskTraining, keras_hub.models.Task):
    """Finds the first and the last token of an answer, as for SQuAD 1.1.

    A dense layer gives each token two logits: one for being the answer's first
    token, one for being its last. The task takes any backbone with a sequence
    output, with memory or without. To load one from a preset of a known kind,
    use a subclass, such as `keras_pkm.models.BertQuestionAnswerer`.

    Args:
        backbone: backbone of keras-hub or `keras_pkm.models`. Its output is a
            tensor of shape `(batch, length, dim)`, or a dict with such a tensor
            as `"sequence_output"`.
        preprocessor: `None`, or a preprocessor that makes the backbone's
            inputs, such as
            `keras_pkm.models.BertQuestionAnswererPreprocessor`. Defaults to
            `None`.

    Returns:
        A dict with `"start"` and `"end"`, float32 logits of shape
        `(batch, length)`.

    Example:

    >>> backbone = keras_hub.models.BertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=2,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ... )
    >>> answerer = keras_pkm.models.add_memory(
    ...     keras_pkm.models.BertQuestionAnswerer(backbone),
    ...     memory_layers=(2,),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ...     memory_block="resm",
    ... )
    >>> features = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "segment_ids": np.zeros((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> answerer(features)["start"].shape
    TensorShape([2, 12])

    References:

    - [Devlin et al., 2018](https://arxiv.org/abs/1810.04805), section 4.2.
    """

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        preprocessor: keras_hub.models.Preprocessor | None = None,
        **kwargs: Any,
    ):
        only_known(kwargs, ("name", "trainable", "compile"))
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.span_dense = keras.layers.Dense(
            2,
            kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02),
            # Probabilities over hundreds of tokens need float32.
            dtype="float32",
            name="span_dense",
        )

        # === Functional Model ===
        outputs = backbone(backbone.input)
        if isinstance(outputs, dict):
            outputs = outputs["sequence_output"]
        logits = self.span_dense(outputs)
        super().__init__(
            inputs=backbone.input,
            outputs={"start": logits[..., 0], "end": logits[..., 1]},
            **kwargs,
        )

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        *,
        metrics: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """Configures the task for training.

        Args:
            optimizer: an optimizer, or `"auto"` for
                `keras_pkm.optimizers.PKMAdam` with a learning rate of 5e-5.
            loss: a loss, or `"auto"` for the mean of both cross-entropies.
                Labels are a dict with `"start"` and `"end"`, int tensors of
                shape `(batch,)`.
            metrics: metrics, or `"auto"` for the accuracies of both.
            **kwargs: further arguments of `keras.Model.compile`.
        """
        if loss == "auto":
            loss = {
                name: keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True
                )
                for name in ("start", "end")
            }
            kwargs.setdefault("loss_weights", {"start": 0.5, "end": 0.5})
        if metrics == "auto":
            metrics = {
                name: [keras.metrics.SparseCategoricalAccuracy()]
                for name in ("start", "end")
            }
        super().compile(
            optimizer=optimizer, loss=loss, metrics=metrics, **kwargs
        )

    # keras-hub's own methods make a tensor of the labels, which are a dict.

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        data = self.preprocess_samples(x, y, sample_weight)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        return keras.Model.train_on_batch(self, x, y, sample_weight, **kwargs)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        data = self.preprocess_samples(x, y, sample_weight)
        x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
        return keras.Model.test_on_batch(self, x, y, sample_weight, **kwargs)


@keras.saving.register_keras_serializable("keras_pkm")
class BertQuestionAnswerer(QuestionAnswerer):
    """`keras_pkm.models.QuestionAnswerer` of BERT."""

    backbone_cls = keras_hub.models.BertBackbone
    preprocessor_cls = BertQuestionAnswererPreprocessor


@keras.saving.register_keras_serializable("keras_pkm")
class DistilBertQuestionAnswerer(QuestionAnswerer):
    """`keras_pkm.models.QuestionAnswerer` of DistilBERT."""

    backbone_cls = keras_hub.models.DistilBertBackbone
    preprocessor_cls = DistilBertQuestionAnswererPreprocessor


@keras.saving.register_keras_serializable("keras_pkm")
class RobertaQuestionAnswerer(QuestionAnswerer):
    """`keras_pkm.models.QuestionAnswerer` of RoBERTa."""

    backbone_cls = keras_hub.models.RobertaBackbone
    preprocessor_cls = RobertaQuestionAnswererPreprocessor
