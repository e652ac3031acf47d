"""Reads the tokenizers of transformers' directories.

`tokenizer.json` has the vocabulary, and how text is normalized and split;
older directories have files of the vocabulary alone. As in transformers,
`tokenizer_config.json` wins where it says how text is normalized.
"""

import json
import pathlib
from typing import Any

import keras_hub

from keras_pkm.converters.hugging_face_files import read_json
from keras_pkm.text.transformers_tokenizers import TransformersRobertaTokenizer
from keras_pkm.text.transformers_tokenizers import TransformersTokenizer

_ADDED = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")
_REMEDY = "Pass preprocessor=None, and tokenize outside."
_SPECIAL_OF_BERT = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_SPECIAL_OF_ROBERTA = {
    "bos_token": "<s>",
    "cls_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}


def read_tokenizer(
    path: pathlib.Path, cls: type[TransformersTokenizer]
) -> keras_hub.tokenizers.Tokenizer:
    """Makes the tokenizer of a directory.

    Args:
        path: The directory.
        cls: The class of tokenizers of its family.

    Raises:
        ValueError: files are missing or damaged, or describe something that the
            class does not compute.
    """
    byte_pairs = issubclass(cls, TransformersRobertaTokenizer)
    special = _SPECIAL_OF_ROBERTA if byte_pairs else _SPECIAL_OF_BERT
    files = _Files(path, special)
    if byte_pairs:
        return cls(**_byte_pairs(files))
    return cls(**_word_pieces(files))


def _word_pieces(files: "_Files") -> dict[str, Any]:
    """The arguments of a WordPiece tokenizer."""
    normalizer: dict[str, Any] = {}
    if files.whole is None:
        lines = files.text("vocab.txt").removesuffix("\n").split("\n")
        vocabulary = {token: number for number, token in enumerate(lines)}
    else:
        vocabulary = files.vocabulary
        files.check("model", "type", ("WordPiece", None))
        files.check("model", "continuing_subword_prefix", ("##", None))
        files.check("model", "max_input_chars_per_word", (100, None))
        files.check("normalizer", "type", ("BertNormalizer",))
        files.check("normalizer", "clean_text", (True, None))
        files.check("pre_tokenizer", "type", ("BertPreTokenizer",))
        normalizer = files.whole["normalizer"]

    def option(name: str, other: str, default: bool | None) -> bool | None:
        value = files.config.get(name)
        return normalizer.get(other, default) if value is None else value

    return {
        "vocabulary": files.in_order(vocabulary),
        "lowercase": option("do_lower_case", "lowercase", True),
        "strip_accents": option("strip_accents", "strip_accents", None),
        "split_on_cjk": option(
            "tokenize_chinese_chars", "handle_chinese_chars", True
        ),
        "added_tokens": files.found(vocabulary),
    }


def _byte_pairs(files: "_Files") -> dict[str, Any]:
    """The arguments of a tokenizer of byte pairs."""
    add_prefix_space = files.config.get("add_prefix_space")
    if files.whole is None:
        vocabulary = json.loads(files.text("vocab.json"))
        merges = [
            line
            for line in files.text("merges.txt").split("\n")
            if line and not line.startswith("#version")
        ]
    else:
        vocabulary = files.vocabulary
        files.check("model", "type", ("BPE", None))
        files.check("model", "continuing_subword_prefix", ("", None))
        files.check("model", "end_of_word_suffix", ("", None))
        files.check("model", "dropout", (None, 0.0))
        files.check("model", "byte_fallback", (False, None))
        files.check("model", "ignore_merges", (False, None))
        files.check("normalizer", "type", (None,))
        files.check("pre_tokenizer", "type", ("ByteLevel",))
        files.check("pre_tokenizer", "use_regex", (True, None))
        if add_prefix_space is None:
            add_prefix_space = files.whole["pre_tokenizer"].get(
                "add_prefix_space"
            )
        merges = [
            each if isinstance(each, str) else " ".join(each)
            for each in files.whole["model"]["merges"]
        ]
    if not merges:
        raise ValueError(
            f"The tokenizer in '{files.path}' must have merges of byte pairs. "
            "Received: none."
        )
    tokens = files.in_order(vocabulary)
    return {
        "vocabulary": {token: number for number, token in enumerate(tokens)},
        "merges": merges,
        "add_prefix_space": bool(add_prefix_space),
        "added_tokens": files.found(vocabulary),
    }


class _Files:
    """The files of a tokenizer.

    Args:
        path: The directory.
        special: The special tokens of the family, by their roles.

    Raises:
        ValueError: other tokens have these roles.
    """

    def __init__(self, path: pathlib.Path, special: dict[str, str]):
        self.path = path
        self.config = self._json("tokenizer_config.json")
        self.whole = self._json("tokenizer.json") or None
        listed = {**self._json("special_tokens_map.json"), **self.config}
        for role, token in special.items():
            found = listed.get(role, token)
            if isinstance(found, dict):
                found = found.get("content")
            # A directory need not have all of them, such as that of a mask.
            if found not in (token, None):
                raise ValueError(
                    f"`{role}` in '{path}' must be '{token}', as this family "
                    f"has it. Received: '{found}'. {_REMEDY}"
                )
        self._added = self._added_tokens(special)

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        return read_json(path) if path.exists() else {}

    def text(self, name: str) -> str:
        """Returns the text of a file of the vocabulary.

        Raises:
            ValueError: it is missing.
        """
        if not (self.path / name).exists():
            here = ", ".join(sorted(each.name for each in self.path.iterdir()))
            raise ValueError(
                f"'{self.path}' must contain tokenizer.json or {name}, with "
                f"the vocabulary. Received: {here}. Save the tokenizer there "
                "with `save_pretrained` of transformers. Or pass "
                "preprocessor=None, and tokenize outside."
            )
        return (self.path / name).read_text(encoding="utf-8")

    def _added_tokens(self, special: dict[str, str]) -> dict[str, Any]:
        """The tokens that are found in texts, with their ids if known.

        These are the special tokens, too, as in transformers.
        """
        added: dict[str, Any] = {
            token: {"content": token, "special": True, "normalized": False}
            for token in special.values()
        }
        if "<mask>" in added:
            added["<mask>"]["lstrip"] = True
        for name, number in self._json("added_tokens.json").items():
            added.setdefault(name, {"content": name})["id"] = number
        listed = list((self.whole or {}).get("added_tokens", []))
        for number, token in self.config.get(
            "added_tokens_decoder", {}
        ).items():
            listed.append({**token, "id": int(number)})
        for token in listed:
            added[token["content"]] = dict(token)
        return added

    def found(self, vocabulary: dict[str, int]) -> list[dict[str, Any]]:
        """Returns arguments of `AddedToken` for the tokens that there are."""
        return [
            {key: token[key] for key in _ADDED if key in token}
            for name, token in self._added.items()
            if name in vocabulary or "id" in token
        ]

    def in_order(self, vocabulary: dict[str, int]) -> list[str]:
        """Returns the tokens in the order of their ids.

        An id without a token gets a name that no word can have.
        """
        tokens = {number: name for name, number in vocabulary.items()}
        for name, token in self._added.items():
            if "id" in token and name not in vocabulary:
                tokens[token["id"]] = name
        return [
            tokens.get(number, f"[no token {number}]")
            for number in range(max(tokens) + 1)
        ]

    @property
    def vocabulary(self) -> dict[str, int]:
        """The tokens of `tokenizer.json`, with their ids.

        Raises:
            ValueError: it has none with ids.
        """
        model = (self.whole or {}).get("model") or {}
        if not isinstance(model.get("vocab"), dict):
            raise ValueError(
                f"'{self.path / 'tokenizer.json'}' must have the vocabulary of "
                f"WordPiece or byte pairs. Received: a model of type "
                f"{model.get('type')}. {_REMEDY}"
            )
        return model["vocab"]

    def check(self, part: str, name: str, computed: tuple[Any, ...]) -> None:
        """Checks that a part of `tokenizer.json` says what we compute.

        Args:
            part: The name of the part, which can be missing.
            name: The name of its entry, `None` where it is missing.
            computed: The values that are computed.

        Raises:
            ValueError: it does not.
        """
        value = ((self.whole or {}).get(part) or {}).get(name)
        if value not in computed:
            raise ValueError(
                f"`{part}.{name}` in '{self.path / 'tokenizer.json'}' must be "
                f"{json.dumps(computed[0])}: nothing else is computed here. "
                f"Received: {json.dumps(value)}. {_REMEDY}"
            )
