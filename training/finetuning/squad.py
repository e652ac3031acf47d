"""Fine-tuning on SQuAD 1.1: windows, head, loss, predictions and figures."""

import json
from collections.abc import Iterable
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_pkm.models.families import task_class
from keras_pkm.text.special_tokens import SpecialTokens
from keras_pkm.text.windows import WindowSizes
from keras_pkm.trainers.freezing import freeze_pooler
from training.batches.labelled import Labelled
from training.batches.labelled import dev_batches
from training.corpora.offset_tokenizer import OffsetTokenizer
from training.finetuning.kind import Evaluated
from training.finetuning.recipe import FinetuningRecipe
from training.loading.pretrained_model import PretrainedModel
from training.tasks.bad_rows import BadRows
from training.tasks.squad import load_squad
from training.tasks.squad import place_of
from training.tasks.squad_score import squad_score
from training.tasks.squad_windows import Windows
from training.tasks.squad_windows import best_answers
from training.tasks.squad_windows import make_windows


class SquadFinetuning:
    """SQuAD as a kind of fine-tuning.

    Args and attributes: see `training.finetuning.glue.GlueFinetuning`.
    """

    decides = "dev F1"

    def __init__(
        self,
        recipe: FinetuningRecipe,
        pretrained: PretrainedModel,
        bad_rows: BadRows,
    ):
        self._family = pretrained.family
        self._batch_size = recipe.batch_size
        length: Any = recipe.sequence_length  # known by now
        self._sizes = WindowSizes(length, recipe.stride, recipe.answer_length)
        examples = load_squad(recipe.squad, recipe.data_dir, bad_rows)
        if recipe.limit:
            examples["train"] = examples["train"][: recipe.limit]
        tokenizer = OffsetTokenizer(pretrained.tokenizer)
        special = SpecialTokens.of(pretrained.tokenizer)
        windows = {
            split: make_windows(
                part,
                tokenizer,
                special,
                self._sizes,
                place_of(recipe.squad, split),
                bad_rows,
            )
            for split, part in examples.items()
        }
        names = pretrained.backbone.input
        self.train = _labelled(windows["train"], names)
        self._dev = examples["dev"]
        # Without those that --skip-bad-rows has left out.
        asked = np.unique(windows["dev"].examples)
        self._scored = [self._dev[number] for number in asked]
        self._dev_windows = windows["dev"]
        self._dev_data = _labelled(windows["dev"], names)
        self.baseline = {"dev exact match": 0.0, "dev F1": 0.0}
        self.preprocessor = pretrained.family.answerer.preprocessor_cls(
            pretrained.tokenizer, sequence_length=recipe.sequence_length
        )

    def build(self, backbone: keras_hub.models.Backbone) -> keras.Model:
        """Returns a task with a new head."""
        freeze_pooler(backbone)
        return task_class(self._family.answerer)(backbone)

    def compile(
        self, task: keras.Model, optimizer: keras.optimizers.Optimizer
    ) -> None:
        """Compiles a task with its loss."""
        task.compile(optimizer, metrics=None, jit_compile=False)

    def evaluate(self, task: keras.Model) -> Evaluated:
        """Returns exact match and F1, from 0 to 1, and the answers.

        The files of answers are `predictions.json`, in the format of SQuAD's
        own script, and `nbest_predictions.json`.
        """
        batches = dev_batches(self._dev_data, batch_size=self._batch_size)
        logits = task.predict(batches.map(lambda x, *_: x), verbose=0)
        count = len(self._dev_windows)
        answers = best_answers(
            self._dev,
            self._dev_windows,
            logits["start"][:count],
            logits["end"][:count],
            self._sizes,
        )
        predictions = {key: found[0]["text"] for key, found in answers.items()}
        score = squad_score(
            predictions, {e.id: e.answers for e in self._scored}
        )
        return Evaluated(
            {
                "dev exact match": score["exact_match"] / 100,
                "dev F1": score["f1"] / 100,
            },
            {
                "predictions.json": json.dumps(predictions, ensure_ascii=False),
                "nbest_predictions.json": json.dumps(
                    answers, ensure_ascii=False
                ),
            },
        )


def _labelled(windows: Windows, names: Iterable[str]) -> Labelled:
    """Returns windows as inputs and labels of a task."""
    return Labelled(
        {name: getattr(windows, name) for name in names},
        {
            "start": np.ascontiguousarray(windows.labels[:, 0]),
            "end": np.ascontiguousarray(windows.labels[:, 1]),
        },
    )
