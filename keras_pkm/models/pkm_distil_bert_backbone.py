"""DistilBERT with product-key memory layers."""

import keras
import keras_hub

from keras_pkm.models.pkm_backbone import PKMBackbone


@keras.saving.register_keras_serializable("keras_pkm")
class PKMDistilBertBackbone(PKMBackbone):
    """A DistilBERT encoder with a product-key memory in some of its layers.

    It has the layers, inputs and outputs of
    `keras_hub.models.DistilBertBackbone`, and equals it without memory.

    The arguments are those of `keras_pkm.models.PKMBertBackbone`, without
    `num_segments`. `activation` defaults to `"gelu"`.

    Example:

    >>> backbone = keras_pkm.models.PKMDistilBertBackbone(
    ...     vocabulary_size=1000,
    ...     num_layers=6,
    ...     num_heads=4,
    ...     hidden_dim=64,
    ...     intermediate_dim=128,
    ...     memory_layers=(2, 4),
    ...     memory={"num_sub_keys": 32, "top_k": 8, "key_dim": 16},
    ... )
    >>> inputs = {
    ...     "token_ids": np.ones((2, 12), "int32"),
    ...     "padding_mask": np.ones((2, 12), "int32"),
    ... }
    >>> backbone(inputs).shape
    TensorShape([2, 12, 64])

    References:

    - [Kim and Jung, 2020](https://arxiv.org/abs/2010.03881)
    - [Sanh et al., 2019](https://arxiv.org/abs/1910.01108)
    """

    plain_cls = keras_hub.models.DistilBertBackbone
    hugging_face_family = "distilbert"
    embeddings_name = "token_and_position_embedding"
    cls_token_index = 0
