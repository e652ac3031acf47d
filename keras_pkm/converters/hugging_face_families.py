"""Maps the modules of transformers' models to ours."""

import dataclasses

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
    "dropout": "hidden_dropout_prob",
    "max_sequence_length": "max_position_embeddings",
}


@dataclasses.dataclass(frozen=True)
class Family:
    """The names of weights and sizes in one family of models.

    Attributes:
        prefix: str. The prefix of names in a model with a head.
        sizes: dict, from our arguments to entries of `config.json`.
        activation: str. The entry of `config.json` that names the activation.
        layer: str. The path of encoder layer number `{}`.
        in_layer: dict, from our modules in a layer to theirs.
        modules: dict, from all our other modules to theirs.
        reserved_positions: int. The number of rows before the first position
            in the table of position embeddings.
    """

    prefix: str
    sizes: dict[str, str]
    activation: str
    layer: str
    in_layer: dict[str, str]
    modules: dict[str, str]
    reserved_positions: int = 0


FAMILIES = {
    "bert": Family(
        prefix="bert.",
        sizes={**_BERT_SIZES, "num_segments": "type_vocab_size"},
        activation="hidden_act",
        layer="encoder.layer.{}.",
        in_layer=_BERT_LAYER,
        modules={
            "token_embedding": "embeddings.word_embeddings",
            "position_embedding": "embeddings.position_embeddings",
            "segment_embedding": "embeddings.token_type_embeddings",
            "embeddings_layer_norm": "embeddings.LayerNorm",
            "pooled_dense": "pooler.dense",
            "mlm_head/intermediate_dense": "cls.predictions.transform.dense",
            "mlm_head/intermediate_layer_norm": (
                "cls.predictions.transform.LayerNorm"
            ),
            "mlm_head": "cls.predictions",
        },
    ),
    "distilbert": Family(
        prefix="distilbert.",
        sizes={
            "vocabulary_size": "vocab_size",
            "num_layers": "n_layers",
            "num_heads": "n_heads",
            "hidden_dim": "dim",
            "intermediate_dim": "hidden_dim",
            "dropout": "dropout",
            "max_sequence_length": "max_position_embeddings",
        },
        activation="activation",
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
            "mlm_head/intermediate_dense": "vocab_transform",
            "mlm_head/intermediate_layer_norm": "vocab_layer_norm",
            "mlm_head": "vocab_projector",
        },
    ),
    "roberta": Family(
        prefix="roberta.",
        sizes=_BERT_SIZES,
        activation="hidden_act",
        layer="encoder.layer.{}.",
        in_layer=_BERT_LAYER,
        modules={
            "embeddings/token_embedding": "embeddings.word_embeddings",
            "embeddings/position_embedding": "embeddings.position_embeddings",
            "embeddings_layer_norm": "embeddings.LayerNorm",
            "mlm_head/intermediate_dense": "lm_head.dense",
            "mlm_head/intermediate_layer_norm": "lm_head.layer_norm",
            "mlm_head": "lm_head",
        },
        # RoBERTa's positions begin after that of padding, which is 1.
        reserved_positions=2,
    ),
}
