"""Makes the directories in `hugging_face/`, with what transformers computes.

    pip install transformers torch
    python tests/converters/make_hugging_face_directories.py [NAME ...]

They hold tiny models of random weights. `expected.npz` has token ids, a padding
mask, the last hidden states and, for those with a head, its outputs.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers

ROOT = pathlib.Path(__file__).parent / "hugging_face"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmno"]
BYTE_PAIRS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklm"]
BYTE_PAIRS += ["Ġ", "ab"]
MERGES = "#version: 0.2\na b\n"
COMMON = {"vocab_size": 20, "initializer_range": 0.5}
BERT = {
    **COMMON,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "hidden_size": 8,
    "intermediate_size": 12,
    "max_position_embeddings": 16,
}
DISTILBERT = {
    **COMMON,
    "n_layers": 2,
    "n_heads": 2,
    "dim": 8,
    "hidden_dim": 12,
    "max_position_embeddings": 16,
}
ROBERTA = {
    **BERT,
    "type_vocab_size": 1,
    "max_position_embeddings": 18,
    "layer_norm_eps": 1e-5,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
MODELS = {
    "bert": (transformers.BertForMaskedLM, transformers.BertConfig, BERT),
    "bert-bare": (transformers.BertModel, transformers.BertConfig, BERT),
    "bert-tanh": (
        transformers.BertModel,
        transformers.BertConfig,
        {**BERT, "hidden_act": "gelu_new"},
    ),
    "distilbert": (
        transformers.DistilBertForMaskedLM,
        transformers.DistilBertConfig,
        DISTILBERT,
    ),
    "distilbert-bare": (
        transformers.DistilBertModel,
        transformers.DistilBertConfig,
        DISTILBERT,
    ),
    "roberta": (
        transformers.RobertaForMaskedLM,
        transformers.RobertaConfig,
        ROBERTA,
    ),
    "roberta-segments": (
        transformers.RobertaForMaskedLM,
        transformers.RobertaConfig,
        {**ROBERTA, "type_vocab_size": 2},
    ),
    "roberta-padding": (
        transformers.RobertaModel,
        transformers.RobertaConfig,
        {**ROBERTA, "type_vocab_size": 3, "pad_token_id": 4},
    ),
    "bert-untied": (
        transformers.BertForMaskedLM,
        transformers.BertConfig,
        {**BERT, "tie_word_embeddings": False},
    ),
    "bert-classifier": (
        transformers.BertForSequenceClassification,
        transformers.BertConfig,
        {**BERT, "num_labels": 3, "classifier_dropout": 0.3},
    ),
    "bert-tokens": (
        transformers.BertForTokenClassification,
        transformers.BertConfig,
        {**BERT, "num_labels": 3},
    ),
    "bert-answerer": (
        transformers.BertForQuestionAnswering,
        transformers.BertConfig,
        BERT,
    ),
    "distilbert-classifier": (
        transformers.DistilBertForSequenceClassification,
        transformers.DistilBertConfig,
        DISTILBERT,
    ),
    "roberta-classifier": (
        transformers.RobertaForSequenceClassification,
        transformers.RobertaConfig,
        ROBERTA,
    ),
}


def main():
    """Writes the directories that are named, or all, anew."""
    for name in sys.argv[1:] or MODELS:
        model_class, config_class, config = MODELS[name]
        torch.manual_seed(0)
        model = model_class(config_class(**config)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                # Biases and norms would hide mistakes where they are 0 and 1.
                parameter += 0.1 * torch.randn_like(parameter)
        path = ROOT / name
        model.save_pretrained(path)
        (path / "generation_config.json").unlink(missing_ok=True)
        write_tokenizer(path, name)
        np.savez(path / "expected.npz", **outputs_of(model, name))


def outputs_of(model, name) -> dict:
    """Returns inputs and outputs, as arrays."""
    rng = np.random.default_rng(1)
    shape = (3, 11)
    token_ids = rng.integers(5, 20, shape)
    padding_mask = np.arange(shape[1]) < np.array([[11], [7], [4]])
    token_ids[~padding_mask] = model.config.pad_token_id
    inputs = {
        "input_ids": torch.tensor(token_ids),
        "attention_mask": torch.tensor(padding_mask.astype("int64")),
    }
    arrays = {"token_ids": token_ids, "padding_mask": padding_mask}
    if name.startswith("bert"):
        arrays["segment_ids"] = rng.integers(0, 2, shape)
        inputs["token_type_ids"] = torch.tensor(arrays["segment_ids"])
    with torch.no_grad():
        outputs = model(**inputs, output_hidden_states=True)
    arrays["hidden"] = outputs.hidden_states[-1].numpy()
    for key in ("logits", "start_logits", "end_logits"):
        if hasattr(outputs, key):
            arrays[key] = outputs[key].numpy()
    return arrays


def write_tokenizer(path, name):
    """Writes the vocabulary in the family's format."""
    if name.startswith("roberta"):
        ids = {token: number for number, token in enumerate(BYTE_PAIRS)}
        (path / "vocab.json").write_text(json.dumps(ids))
        (path / "merges.txt").write_text(MERGES)
        return
    (path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    (path / "tokenizer_config.json").write_text('{"do_lower_case": true}\n')


if __name__ == "__main__":
    main()
