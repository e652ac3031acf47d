"""Makes the directories in `tokenizers/`, with what transformers computes.

    pip install transformers
    python tests/converters/make_tokenizers.py

They hold tokenizers of tiny vocabularies, some as `tokenizer.json` alone, some
as files of the vocabulary alone. `expected.json` has texts and their ids.
"""

import json
import pathlib
import shutil

import transformers

ROOT = pathlib.Path(__file__).parent / "tokenizers"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY += [*LETTERS, *LETTERS.upper(), *"0123456789.,!?'\"-[]…½ßéÉ日本"]
VOCABULARY += [f"##{each}" for each in LETTERS + LETTERS.upper() + "éÉß½"]
VOCABULARY += ["the", "hello", "cafe", "café", "##ing", "日本"]
TEXTS = [
    "Hello THE café CAFÉ cafe\u0301, naïve!",
    "a\u00a0b\u2009c\u3000d\te\nf\r\ng",
    "co\u00adop zero\u200bwidth a\u0000b \ufeffc",
    "wait… ½ Straße ΑΣ ﬁ İ",
    "😀 hi😀 👩\u200d💻",
    "日本語 a日b",
    "the [MASK] is [SEP] [mask] [ENT] hello-hello dinghy",
    "don't  stop   me \n\n now ",
    "x" * 101 + " " + "é" * 60,
    "",
    "   ",
]
BYTES = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
MERGES = ["Ġ t", "h e", "Ġt he", "Ġ Ġ", "ĠĠ Ġ", "l l", "C a", "Ċ Ċ", "1 2"]


def byte_pairs():
    """The vocabulary and merges of byte pairs."""
    from tokenizers.pre_tokenizers import ByteLevel

    vocabulary = dict(BYTES)
    for token in sorted(ByteLevel.alphabet()):
        vocabulary[token] = len(vocabulary)
    for merge in MERGES:
        vocabulary[merge.replace(" ", "")] = len(vocabulary)
    vocabulary["<mask>"] = len(vocabulary)
    return vocabulary, [tuple(merge.split(" ")) for merge in MERGES]


def word_pieces(**options):
    """A tokenizer of BERT."""
    vocabulary = {token: number for number, token in enumerate(VOCABULARY)}
    return transformers.BertTokenizer(vocab=vocabulary, **options)


def roberta(**options):
    """A tokenizer of RoBERTa."""
    vocabulary, merges = byte_pairs()
    return transformers.RobertaTokenizer(
        vocab=vocabulary, merges=merges, **options
    )


def with_added_tokens():
    """A tokenizer of BERT with tokens that were added later."""
    tokenizer = word_pieces()
    tokenizer.add_tokens(["dingh"])
    tokenizer.add_tokens(["[ENT]"], special_tokens=True)
    return tokenizer


TOKENIZERS = {
    "bert-uncased": word_pieces,
    "bert-cased": lambda: word_pieces(do_lower_case=False),
    "bert-accents": lambda: word_pieces(strip_accents=False),
    "bert-whole-cjk": lambda: word_pieces(tokenize_chinese_chars=False),
    "bert-added": with_added_tokens,
    "roberta": roberta,
    "roberta-prefix-space": lambda: roberta(add_prefix_space=True),
}


def main():
    """Writes all directories anew."""
    for name, make in TOKENIZERS.items():
        path = ROOT / name
        shutil.rmtree(path, ignore_errors=True)
        make().save_pretrained(path)
        write_expected(path)
    write_vocabulary_alone(ROOT / "bert-uncased", {"do_lower_case": True})
    write_vocabulary_alone(ROOT / "bert-cased", {"do_lower_case": False})
    write_vocabulary_alone(ROOT / "bert-accents", {"strip_accents": False})
    write_vocabulary_alone(ROOT / "roberta", None)


def write_vocabulary_alone(source, config):
    """Writes a directory as older ones are, without `tokenizer.json`."""
    path = source.with_name(f"{source.name}-files")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    if source.name == "roberta":
        vocabulary, _ = byte_pairs()
        text = json.dumps(vocabulary)
        (path / "vocab.json").write_text(text, encoding="utf-8")
        text = "\n".join(["#version: 0.2", *MERGES, ""])
        (path / "merges.txt").write_text(text, encoding="utf-8")
    else:
        text = "\n".join([*VOCABULARY, ""])
        (path / "vocab.txt").write_text(text, encoding="utf-8")
    if config is not None:
        (path / "tokenizer_config.json").write_text(json.dumps(config))
    write_expected(path)


def write_expected(path):
    """Writes the ids of all texts, as transformers gives them."""
    kind = "roberta" if path.name.startswith("roberta") else "bert"
    cls = {
        "bert": transformers.BertTokenizer,
        "roberta": transformers.RobertaTokenizer,
    }[kind]
    tokenizer = cls.from_pretrained(path)
    ids = {
        text: tokenizer(text, add_special_tokens=False).input_ids
        for text in TEXTS
    }
    (path / "expected.json").write_text(json.dumps(ids, indent=1))


if __name__ == "__main__":
    main()
