"""Maps the modules of transformers' models to ours."""

import dataclasses

import keras_hub

from keras_pkm.text.transformers_tokenizers import TransformersBertTokenizer
from keras_pkm.text.transformers_tokenizers import (
    TransformersDistilBertTokenizer,
)
from keras_pkm.text.transformers_tokenizers import TransformersRobertaTokenizer
from keras_pkm.text.transformers_tokenizers import TransformersTokenizer

_BERT_LAYER = {
    "self_attention_layer/query": "attention.self.query",
    "self_attention_layer/key": "attention.self.key",
    "self_attention_layer/value": "attention.self.value",
    "self_attention_layer/attention_output": "attention.output.dense",
    "self_attention_layer_norm": "attention.output.LayerNorm",
    "feedforward_intermediate_dense": "intermediate.dense",
    "feedforward_output_dense": "output.dense",
    "feedforward_layer_norm": "output.LayerNorm",
}
_BERT_SIZES = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
}


@dataclasses.dataclass(frozen=True)
class Family:
    """The names of weights and sizes in one family of models.

    Attributes:
        backbone: The class of KerasHub's backbones.
        prefix: str. The prefix of names in a model with a head.
        sizes: dict, from our arguments to entries of `config.json`.
        activation: str. The entry of `config.json` that names the activation.
        dropouts: The entries of `config.json` for the dropout rates of layers.
        classifier_dropouts: The entries for that of a classifier's head: the
            first that is set.
        layer: str. The path of encoder layer number `{}`.
        in_layer: dict, from our modules in a layer to theirs.
        modules: dict, from all our other modules of a backbone to theirs.
        heads: dict, from our modules that checkpoints may lack to theirs.
        decoder: str. Their module that predicts tokens; its kernel is that of
            the token embeddings.
        segments: optional str. The entry of `config.json` for the number of
            rows of `token_type_embeddings`, for models without this input. Row
            0 is added at every position.
        epsilon: optional str. The entry for the epsilon of layer norms.
        position_offset: optional str. The entry for the id of padding, after
            which positions are counted.
        tokenizer: The class of tokenizers.
    """

    backbone: type[keras_hub.models.Backbone]
    prefix: str
    sizes: dict[str, str]
    activation: str
    dropouts: tuple[str, str]
    classifier_dropouts: tuple[str, ...]
    layer: str
    in_layer: dict[str, str]
    modules: dict[str, str]
    heads: dict[str, str]
    decoder: str
    tokenizer: type[TransformersTokenizer]
    segments: str | None = None
    epsilon: str | None = "layer_norm_eps"
    position_offset: str | None = None


_BERT_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")

FAMILIES = {
    "bert": Family(
        backbone=keras_hub.models.BertBackbone,
        prefix="bert.",
        sizes={**_BERT_SIZES, "num_segments": "type_vocab_size"},
        activation="hidden_act",
        dropouts=_BERT_DROPOUTS,
        classifier_dropouts=("classifier_dropout", "hidden_dropout_prob"),
        layer="encoder.layer.{}.",
        in_layer=_BERT_LAYER,
        modules={
            "token_embedding": "embeddings.word_embeddings",
            "position_embedding": "embeddings.position_embeddings",
            "segment_embedding": "embeddings.token_type_embeddings",
            "embeddings_layer_norm": "embeddings.LayerNorm",
        },
        heads={
            "pooled_dense": "pooler.dense",
            "logits": "classifier",
            "span_dense": "qa_outputs",
            "mlm_head/intermediate_dense": "cls.predictions.transform.dense",
            "mlm_head/intermediate_layer_norm": (
                "cls.predictions.transform.LayerNorm"
            ),
            "mlm_head": "cls.predictions",
        },
        decoder="cls.predictions.decoder",
        tokenizer=TransformersBertTokenizer,
    ),
    "distilbert": Family(
        backbone=keras_hub.models.DistilBertBackbone,
        prefix="distilbert.",
        sizes={
            "vocabulary_size": "vocab_size",
            "num_layers": "n_layers",
            "num_heads": "n_heads",
            "hidden_dim": "dim",
            "intermediate_dim": "hidden_dim",
            "max_sequence_length": "max_position_embeddings",
        },
        activation="activation",
        dropouts=("dropout", "attention_dropout"),
        classifier_dropouts=("seq_classif_dropout",),
        layer="transformer.layer.{}.",
        in_layer={
            "self_attention_layer/query": "attention.q_lin",
            "self_attention_layer/key": "attention.k_lin",
            "self_attention_layer/value": "attention.v_lin",
            "self_attention_layer/attention_output": "attention.out_lin",
            "self_attention_layer_norm": "sa_layer_norm",
            "feedforward_intermediate_dense": "ffn.lin1",
            "feedforward_output_dense": "ffn.lin2",
            "feedforward_layer_norm": "output_layer_norm",
        },
        modules={
            "token_and_position_embedding/token_embedding": (
                "embeddings.word_embeddings"
            ),
            "token_and_position_embedding/position_embedding": (
                "embeddings.position_embeddings"
            ),
            "embeddings_layer_norm": "embeddings.LayerNorm",
        },
        heads={
            "pooled_dense": "pre_classifier",
            "logits": "classifier",
            "span_dense": "qa_outputs",
            "mlm_head/intermediate_dense": "vocab_transform",
            "mlm_head/intermediate_layer_norm": "vocab_layer_norm",
            "mlm_head": "vocab_projector",
        },
        decoder="vocab_projector",
        epsilon=None,
        tokenizer=TransformersDistilBertTokenizer,
    ),
    "roberta": Family(
        backbone=keras_hub.models.RobertaBackbone,
        prefix="roberta.",
        sizes=_BERT_SIZES,
        activation="hidden_act",
        dropouts=_BERT_DROPOUTS,
        classifier_dropouts=("classifier_dropout", "hidden_dropout_prob"),
        layer="encoder.layer.{}.",
        in_layer=_BERT_LAYER,
        modules={
            "embeddings/token_embedding": "embeddings.word_embeddings",
            "embeddings/position_embedding": "embeddings.position_embeddings",
            "embeddings_layer_norm": "embeddings.LayerNorm",
        },
        heads={
            "pooled_dense": "classifier.dense",
            "logits": "classifier.out_proj",
            "span_dense": "qa_outputs",
            "mlm_head/intermediate_dense": "lm_head.dense",
            "mlm_head/intermediate_layer_norm": "lm_head.layer_norm",
            "mlm_head": "lm_head",
        },
        decoder="lm_head.decoder",
        segments="type_vocab_size",
        position_offset="pad_token_id",
        tokenizer=TransformersRobertaTokenizer,
    ),
}
