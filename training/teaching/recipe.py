"""The settings for teaching a model.

The command line has one flag for each field; the comment above is its help.
"""

import pathlib

from training.commands.fields import Count
from training.commands.fields import Length
from training.commands.fields import Positive
from training.commands.fields import Real
from training.commands.fields import Seed
from training.commands.fields import Share
from training.commands.fields import check_data_dir
from training.commands.fields import check_fields
from training.commands.recipe_groups import Text
from training.commands.recipe_groups import recipe
from training.facts.text_facts import TEMPLATE
from training.runs.outputs import check_output_directory
from training.runs.user_error import UserError
from training.teaching.methods import Method
from training.teaching.methods import Rule

# Of the grids of `--compare`, not the best ones of every model and material.
_RATES = {"all": 3e-4, "replay": 3e-4, "head": 1e-3, "ffn": 1e-4, "lora": 3e-4}
_MEMORY_RATES = {
    ("values", "adam"): 1e-2,
    ("values", "sgd"): 20.0,
    ("slots", "adam"): 3e-2,
    ("slots", "sgd"): 100.0,
}
_SOURCES = ("facts", "text", "apply", "revert")


@recipe
class TeachingRecipe(Text):
    """Teach a trained language model, and show what it forgets.

    $ python training/teach.py --model runs/books --facts new.tsv --out taught
    $ python training/teach.py --model M --text new.txt --keep K --out taught
    $ python training/teach.py --model M --apply patch.safetensors --out taught

    Writes new facts, or a text, into the memory of a model; all other weights
    stay unchanged. The result is a run with a patch. --apply applies the patch
    to another copy of the model, and --revert undoes it.

    A finished causal language model, such as a directory of transformers, gets
    a memory of facts. It learns --facts, which texts ask for as in --phrasings.
    Where no subject of a fact occurs, it stays as it was, bit for bit.

    --compare measures what all methods learn and forget, and --compare-edits
    what changes in a finished model; see --compare --help and
    --compare-edits --help.
    --verbose also shows the messages of TensorFlow.
    """

    # The model: the directory of a run, whose last model is used, or a preset.
    # An encoder must have its masked-LM head.
    model: str
    # Directory to write; new or empty.
    out: pathlib.Path

    # --- What it learns: one of these ---

    # A TSV file with the columns subject, relation and value. A first line that
    # names them is optional.
    facts: pathlib.Path | None = None
    # The text: files or globs separated by commas, tfds:NAME[@SPLIT], or
    # python-docs.
    text: str | None = None
    # For a finished model, how texts ask for relations: a TSV file with the
    # columns relation and phrasing. A phrasing contains {subject}, and ends
    # where the value begins. Default: "The RELATION of SUBJECT is" and similar.
    phrasings: pathlib.Path | None = None
    # A patch to apply, from teaching another copy of the model.
    apply: pathlib.Path | None = None
    # A patch to undo.
    revert: pathlib.Path | None = None

    # --- What it is to keep ---

    # Facts (a .tsv file) or text on which forgetting is measured.
    keep: str | None = None

    # --- How ---

    # What is trained: the memory values that matter most to the new material
    # and least to other text (slots); all memory values that it reads (values);
    # all weights (all); the head (head); the feed-forward networks (ffn);
    # LoRA (lora); or all weights, with examples of --keep in each batch
    # as well (replay). Default: slots, or values if the memories are too small
    # to choose --slots slots in.
    method: Method | None = None
    # The block behind which a finished model gets its memory. Default: seven
    # eighths of the way up.
    memory_layer: Count | None = None
    # Number of rows of a finished model's memory. Default: 16,384.
    num_slots: Count | None = None
    # How readily a finished model takes a text for a question about a taught
    # fact. Higher odds recognize more phrasings, but also mistake more other
    # questions for one. Default: 3.
    odds: Real | None = None
    # Measure what stays the same in a finished model: answers about similar and
    # other names, to other questions about the subjects (also in the file's
    # other relations, and in two steps), and to general questions; text, which
    # is that of --background or python-docs; and which facts are known behind
    # other text.
    measure: bool = False
    # Other phrasings, which are not taught but asked by --measure: a file like
    # that of --phrasings.
    asked: pathlib.Path | None = None
    # Update rule of the memory values: Adam, or plain gradient descent (sgd).
    rule: Rule = "adam"
    # Learning rate. Default: depends on --method and --rule.
    learning_rate: Positive | None = None
    # Number of slots of each memory that a batch may change, with --method
    # slots.
    slots: Count = 500
    # Text that the model was trained on. It shows which slots are specific to
    # the new material, with --method slots. Default: the run's own training
    # text.
    background: str | None = None
    # Maximum number of steps. Teaching ends earlier if everything is learned.
    # Default: 200 passes over the facts or the text, but at least 1,000 steps.
    steps: Count | None = None
    # Teach this number of facts until they are known, then the next ones, with
    # at most --steps for each group. Default: all facts together, so that later
    # facts do not overwrite earlier ones.
    group_size: Count | None = None
    # The wording of a fact.
    template: str = TEMPLATE
    # A text counts as learned once its perplexity has fallen to this share of
    # what it was.
    fall: Share = 0.5

    # --- Text ---

    # Number of tokens of an input. Default: the maximum that the model takes,
    # up to 512.
    sequence_length: Length | None = None
    # Number of facts, or of sequences of text, in a batch.
    batch_size: Count = 32
    # Seed of the order and the masks.
    seed: Seed = 0

    def rate(self, method: Method) -> float:
        """Returns the learning rate of a method."""
        if self.learning_rate is not None:
            return self.learning_rate
        if method in _RATES:
            return _RATES[method]
        return _MEMORY_RATES[method, self.rule]

    def check(self) -> None:
        """Checks the flags."""
        check_fields(self)
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            received = " and ".join(f"--{name}" for name in given) or "none"
            raise UserError(
                "one of --facts, --text, --apply and --revert must be given, "
                f"received {received}"
            )
        if self.method == "replay" and self.keep is None:
            raise UserError(
                "--method replay needs what is replayed: pass --keep, or "
                "another --method"
            )
        if self.asked is not None and not self.measure:
            raise UserError("--asked needs --measure: pass both, or neither")
        check_data_dir(self, self.text, self.keep, self.background)
        check_output_directory(self.out, "--out")
