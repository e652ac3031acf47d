"""Text corpora, tokenizers, and packed rows of token ids."""
