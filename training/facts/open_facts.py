"""The facts that `--facts` names."""

import pathlib
import sys
import unicodedata

import keras_hub

from training.corpora.byte_pairs import train_byte_pairs
from training.corpora.word_pieces import make_tokenizer
from training.corpora.word_pieces import train_vocabulary
from training.facts.fact_batches import Facts
from training.facts.fact_file import read_fact_file
from training.facts.random_facts import RandomFacts
from training.facts.text_facts import Fact
from training.facts.text_facts import TextFacts
from training.runs.user_error import UserError


def open_facts(
    source: str,
    *,
    values: int,
    relations: int,
    vocabulary_size: int,
    synonyms: int = 1,
    causal: bool = False,
) -> Facts:
    """Returns facts."""
    if source.isdecimal():
        return RandomFacts(
            num_facts=int(source),
            num_values=values,
            num_relations=relations,
            synonyms=synonyms,
            causal=causal,
        )
    if source == "unicode":
        facts = unicode_names()
    else:
        path = pathlib.Path(source)
        if not path.exists():
            raise UserError(
                "--facts must be a number of random facts, unicode, or a file "
                f"of facts, received '{source}', which does not exist"
            )
        facts = read_fact_file(path)
    texts = (fact.text for fact in facts)
    if causal:
        kind = keras_hub.tokenizers.GPT2Tokenizer
        return TextFacts(
            facts, train_byte_pairs(texts, vocabulary_size, kind, False)
        )
    vocabulary = train_vocabulary(texts, vocabulary_size, progress=False)
    return TextFacts(facts, make_tokenizer(vocabulary))


# These names follow from the code point, like names that end with it.
_COMPUTED = "HANGUL SYLLABLE "


def unicode_names() -> list[Fact]:
    """Returns the names of all characters with individual names.

    Subjects are code points as hexadecimal digits; there is no relation.
    """
    facts = []
    for point in range(sys.maxunicode + 1):
        digits = f"{point:04X}"
        name = unicodedata.name(chr(point), "")
        if name and not name.startswith(_COMPUTED) and digits not in name:
            place = f"U+{digits} of Unicode {unicodedata.unidata_version}"
            facts.append(Fact(digits, "", name, place))
    return facts
