"""How texts ask for relations, from a TSV file."""

import pathlib

from keras_pkm.teaching.fact_prompts import SUBJECT
from training.facts.fact_file import read_cell
from training.facts.fact_file import read_lines
from training.runs.user_error import UserError


def read_phrasing_file(
    path: pathlib.Path, flag: str = "--phrasings"
) -> dict[str, list[str]]:
    r"""Reads a file with a phrasing a line: relation, tab, phrasing.

    A phrasing contains `{subject}` and ends where the value begins. In it, \n
    stands for the end of a line. Empty lines are skipped. Quotes around a cell
    are a spreadsheet's, as in a file of facts.
    """
    phrasings: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path, flag), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        relation, tab, phrasing = line.partition("\t")
        relation, phrasing = (
            read_cell(cell, place) for cell in (relation, phrasing)
        )
        if not (tab and relation and phrasing):
            raise UserError(
                f"{place}: a line must have two columns, separated by a tab: "
                f"relation, phrasing; received {line!r}"
            )
        if SUBJECT not in phrasing:
            raise UserError(
                f"{place}: a phrasing must contain {SUBJECT}, where its "
                f"subject stands; received {phrasing!r}"
            )
        of_relation = phrasings.setdefault(relation, [])
        phrasing = phrasing.replace("\\n", "\n")
        if phrasing not in of_relation:
            of_relation.append(phrasing)
    if not phrasings:
        raise UserError(f"{path} must contain phrasings, but has none")
    return phrasings
