"""KerasHub's Llama 3 tokenizer, whose special tokens outlive a preset."""

from collections.abc import Iterable
from typing import Any

import keras
import keras_hub


@keras.saving.register_keras_serializable("keras_pkm")
class WholeLlama3Tokenizer(keras_hub.tokenizers.Llama3Tokenizer):
    """A tokenizer that keeps its special tokens in its config.

    KerasHub's leaves them out, so that presets of checkpoints with others than
    Llama's own, such as SmolLM2, cannot be loaded again.
    """

    def __init__(
        self,
        vocabulary: Any = None,
        merges: Any = None,
        bos_token: str = "<|begin_of_text|>",
        eos_token: str = "<|end_of_text|>",
        misc_special_tokens: Iterable[str] = (),
        **kwargs: Any,
    ):
        misc = set(misc_special_tokens) - {bos_token, eos_token}
        self._special = (bos_token, eos_token, sorted(misc))
        super().__init__(
            vocabulary, merges, bos_token, eos_token, misc, **kwargs
        )

    @classmethod
    def of(
        cls, tokenizer: keras_hub.tokenizers.Llama3Tokenizer
    ) -> "WholeLlama3Tokenizer":
        """Returns such a tokenizer, like one of KerasHub's."""
        return cls(
            dict(tokenizer.vocabulary),
            list(tokenizer.merges),
            tokenizer.start_token,
            tokenizer.end_token,
            [
                getattr(tokenizer, name)
                for name in tokenizer._special_token_attrs
                if name.startswith("special_token_")
            ],
            sequence_length=tokenizer.sequence_length,
            add_prefix_space=tokenizer.add_prefix_space,
            dtype=tokenizer.dtype,
        )

    def get_config(self) -> dict[str, Any]:
        bos_token, eos_token, misc = self._special
        return {
            **super().get_config(),
            "bos_token": bos_token,
            "eos_token": eos_token,
            "misc_special_tokens": misc,
        }
