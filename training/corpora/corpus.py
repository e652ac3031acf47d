"""Corpora: named streams of documents, and their split in two."""

import dataclasses
import functools
import hashlib
import os
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator

import tensorflow as tf

from training.corpora.python_docs import python_documents
from training.corpora.text_files import check_text_files
from training.corpora.text_files import find_text_files
from training.corpora.text_files import read_documents
from training.corpora.tfds_examples import load_tfds
from training.runs.user_error import UserError


def read_tfds(dataset: tf.data.Dataset) -> Iterator[str]:
    """Yields the feature "text" of each example."""
    texts = dataset.map(lambda example: example["text"])
    for text in texts.as_numpy_iterator():
        yield text.decode("utf-8", errors="replace").replace("\0", "\ufffd")


def _load(
    spec: str, name: str, split: str, data_dir: str | None
) -> tf.data.Dataset:
    dataset = load_tfds(
        name, split, data_dir, f"the corpus '{spec}'", in_order=False
    )
    features = dataset.element_spec
    if features.get("text") != tf.TensorSpec((), tf.string):
        found = ", ".join(
            f"{key} ({each.dtype.name})" for key, each in features.items()
        )
        raise UserError(
            f"the corpus '{spec}' must have a feature 'text' of one "
            f"string, but has {found}: write the text to a file and pass that"
        )
    return dataset


_TFDS_PREFIX = "tfds:"


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Documents that can be iterated many times, always in the same order.

    The documents are streamed: a corpus need not fit in memory. A newline in a
    document ends a paragraph, and thereby a sentence.
    """

    name: str
    documents: Callable[[], Iterable[str]]
    # Where the documents are, such as the paths of files.
    sources: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[str]:
        return iter(self.documents())


def open_corpus(spec: str, data_dir: str | None = None) -> Corpus:
    """Returns the corpus that `spec` names, checked."""
    if spec == "python-docs":
        return Corpus(spec, python_documents, sources=(spec,))
    if spec.startswith(_TFDS_PREFIX):
        name, _, split = spec.removeprefix(_TFDS_PREFIX).partition("@")
        split = split or "train"
        dataset = _load(spec, name, split, data_dir)
        # A part of a split, such as train[:10%], has texts of it.
        source = f"{name}@{split.partition('[')[0]}"
        return Corpus(spec, functools.partial(read_tfds, dataset), (source,))
    paths = find_text_files(spec)
    check_text_files(paths)
    return Corpus(
        spec,
        functools.partial(read_documents, paths),
        tuple(os.path.realpath(path) for path in paths),
    )


def split_documents(
    corpus: Corpus, held_out: float, seed: int = 0
) -> tuple[Corpus, Corpus]:
    """Splits the documents of a corpus into a training and a held-out part.

    The part of a document depends on its own text. So equal documents are in
    the same part, and no document changes sides when a corpus grows.
    """

    def side(is_held_out: bool) -> Iterator[str]:
        for document in corpus:
            if (_uniform(document, seed) < held_out) == is_held_out:
                yield document

    return (
        Corpus(f"{corpus.name}, training", functools.partial(side, False)),
        Corpus(f"{corpus.name}, held out", functools.partial(side, True)),
    )


class SharedDocuments:
    """Counts the documents of one corpus that also occur in another one."""

    def __init__(self, corpus: Corpus):
        self._sizes = {_digest(each): len(each) for each in corpus}
        self._found: set[bytes] = set()

    @property
    def share(self) -> float:
        """The share of the text that occurs in the other corpus."""
        found = sum(self._sizes[each] for each in self._found)
        return found / max(1, sum(self._sizes.values()))

    def watched(self, corpus: Corpus) -> Corpus:
        """Returns the other corpus, whose documents are noted as they pass."""

        def documents() -> Iterator[str]:
            for document in corpus:
                digest = _digest(document)
                if digest in self._sizes:
                    self._found.add(digest)
                yield document

        return dataclasses.replace(corpus, documents=documents)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _uniform(text: str, seed: int) -> float:
    """Returns a number in [0, 1) that is a hash of the text."""
    digest = hashlib.sha256(f"{seed}:{text}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
