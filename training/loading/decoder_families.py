"""The causal models that can be trained, and their classes."""

import dataclasses
from typing import Any
from typing import Literal

import keras_hub

from keras_pkm import models
from training.batches.objectives import NextTokens
from training.loading.language_model_family import LanguageModelFamily


@dataclasses.dataclass(frozen=True)
class DecoderFamily(LanguageModelFamily):
    """The classes of one kind of causal model."""

    # Its name in flags.
    name: str
    # The class of the plain task.
    causal_lm: type
    # The class that prepares text for it.
    causal_lm_preprocessor: type

    objective: Literal["causal"] = dataclasses.field(
        default="causal", init=False
    )
    inherited = ("max_sequence_length",)

    def make_objective(
        self,
        tokenizer: keras_hub.tokenizers.BytePairTokenizer,
        sequence_length: int,
        mask_rate: float,
    ) -> NextTokens:
        """Returns the training objective."""
        return NextTokens(tokenizer, sequence_length)

    def make_preprocessor(
        self, objective: NextTokens
    ) -> keras_hub.models.CausalLMPreprocessor:
        """Returns a preprocessor that prepares text as the objective does."""
        return self.causal_lm_preprocessor(
            objective.tokenizer, sequence_length=objective.sequence_length
        )

    def make_task(
        self,
        sizes: dict[str, Any],
        *,
        memory_layers: tuple[int, ...],
        memory_block: Literal["ffn", "pkm", "resm", "serial"],
        memory: dict[str, Any],
        share_table: bool = False,
    ) -> keras_hub.models.CausalLM:
        """Builds a language model with initial weights."""
        return models.add_memory(
            self.causal_lm(self.plain(**sizes)),
            memory_layers,
            memory,
            "ffn" if memory_block == "ffn" else "serial",
            share_table,
        )


DECODERS = (
    DecoderFamily(
        title="GPT-2",
        plain=keras_hub.models.GPT2Backbone,
        tokenizer=keras_hub.models.GPT2Tokenizer,
        name="gpt2",
        causal_lm=keras_hub.models.GPT2CausalLM,
        causal_lm_preprocessor=keras_hub.models.GPT2CausalLMPreprocessor,
    ),
    DecoderFamily(
        title="GPT-NeoX",
        plain=keras_hub.models.GPTNeoXBackbone,
        tokenizer=keras_hub.models.GPTNeoXTokenizer,
        name="gpt_neox",
        causal_lm=keras_hub.models.GPTNeoXCausalLM,
        causal_lm_preprocessor=keras_hub.models.GPTNeoXCausalLMPreprocessor,
    ),
    DecoderFamily(
        title="OPT",
        plain=keras_hub.models.OPTBackbone,
        tokenizer=keras_hub.models.OPTTokenizer,
        name="opt",
        causal_lm=keras_hub.models.OPTCausalLM,
        causal_lm_preprocessor=keras_hub.models.OPTCausalLMPreprocessor,
    ),
)
