"""The facts that `--facts` names."""

import pathlib

from keras_pkm.runs.user_error import UserError
from training.knowledge.fact_batches import Facts
from training.knowledge.fact_file import read_fact_file
from training.knowledge.random_facts import RandomFacts
from training.knowledge.recipe import RecallRecipe
from training.knowledge.text_facts import TextFacts
from training.knowledge.unicode_names import unicode_names
from training.text.word_pieces import make_tokenizer
from training.text.word_pieces import train_vocabulary


def open_facts(recipe: RecallRecipe, num_facts: int | None = None) -> Facts:
    """Returns the facts of a recipe.

    Args:
        recipe: `RecallRecipe`.
        num_facts: Of random facts their number, if it is another one.

    Raises:
        UserError: there are not as many, or a file cannot be used.
    """
    if recipe.has_random_facts:
        return RandomFacts(
            num_facts=num_facts or int(recipe.facts),
            num_values=recipe.values,
            num_relations=recipe.relations,
        )
    if recipe.facts == "unicode":
        facts = unicode_names()
    else:
        path = pathlib.Path(recipe.facts)
        if not path.exists():
            raise UserError(
                "--facts must be a number of random facts, unicode, or a file "
                f"of facts, received '{recipe.facts}', which does not exist"
            )
        facts = read_fact_file(path)
    vocabulary = train_vocabulary(
        (fact.text for fact in facts), recipe.vocabulary_size, progress=False
    )
    return TextFacts(facts, make_tokenizer(vocabulary))
