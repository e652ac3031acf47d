"""The names of Unicode's characters, as real facts that Python knows."""

import sys
import unicodedata

from training.facts.text_facts import Fact

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
