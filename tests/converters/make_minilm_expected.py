"""Writes what transformers computes of all-MiniLM-L6-v2, from text.

    pip install transformers torch
    python tests/converters/make_minilm_expected.py DIRECTORY

The directory is that of the model, as transformers loads it. `minilm.npz` has
texts, their ids, and the last hidden states.
"""

import pathlib
import sys

import numpy as np
import torch
import transformers

PATH = pathlib.Path(__file__).parent / "minilm.npz"
TEXTS = [
    "The café in Montréal serves crème brûlée.",
    "NAÏVE RÉSUMÉS, written in CAPITALS!",
    "A non-breaking\u00a0space stands\u00a0here.",
    "Emoji \U0001f600 stand between words, and after\U0001f680 them.",
    "Straße, Ångström and Łódź…",
    "cafe\u0301 with a combining accent",
    "co\u00adoperate has a soft hyphen, half is ½",
    "東京 is the capital of Japan.",
    "[MASK] is a special token, as is [SEP].",
    "“Quoted” — don't you think?",
]


def main(directory):
    """Writes the file."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModel.from_pretrained(directory).eval()
    # The directory's own padding is to 128 tokens.
    tokenizer.backend_tokenizer.no_padding()
    inputs = tokenizer(TEXTS, padding="longest", return_tensors="pt")
    with torch.no_grad():
        outputs = model(**inputs)
    np.savez_compressed(
        PATH,
        texts=np.array(TEXTS),
        token_ids=inputs["input_ids"].numpy(),
        padding_mask=inputs["attention_mask"].numpy(),
        hidden=outputs.last_hidden_state.numpy(),
        pooled=outputs.pooler_output.numpy(),
    )


if __name__ == "__main__":
    main(sys.argv[1])
