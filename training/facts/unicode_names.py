"""The names of Unicode's characters, which Python knows: real facts."""

import sys
import unicodedata

from training.facts.text_facts import Fact

# Names of these follow from their numbers, as do those that end with them.
_COMPUTED = "HANGUL SYLLABLE "


def unicode_names() -> list[Fact]:
    """Returns the names of all characters that have one of their own.

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
