"""Fine-tuning on a GLUE task: data, head, loss and figures."""

import keras
import keras_hub

from keras_pkm.metrics import MatthewsCorrelation
from keras_pkm.models.families import task_class
from training.batches.labelled import dev_batches
from training.batches.labelled import encode_texts
from training.finetuning.kind import Evaluated
from training.finetuning.recipe import FinetuningRecipe
from training.loading.pretrained_model import PretrainedModel
from training.tasks.bad_rows import BadRows
from training.tasks.glue import load_glue


class GlueFinetuning:
    """A GLUE task as a kind of fine-tuning."""

    def __init__(
        self,
        recipe: FinetuningRecipe,
        pretrained: PretrainedModel,
        bad_rows: BadRows,
    ):
        task = recipe.glue_task
        self._task = task
        self._recipe = recipe
        self._family = pretrained.family
        examples = load_glue(task, recipe.glue, recipe.data_dir, bad_rows)
        if recipe.limit:
            examples["train"] = examples["train"].first(recipe.limit)
        self.preprocessor = pretrained.family.preprocessor(
            pretrained.tokenizer, sequence_length=recipe.sequence_length
        )
        data = {
            split: encode_texts(
                part.texts,
                part.labels,
                self.preprocessor,
                f"{task.title} {split}",
            )
            for split, part in examples.items()
        }
        self.train = data.pop("train")
        self._dev = {
            split: dev_batches(part, batch_size=recipe.batch_size)
            for split, part in data.items()
        }
        self._dev_rows = {split: len(part) for split, part in data.items()}
        self.decides = f"{next(iter(self._dev))} {task.metric}"
        accuracy = task.metric == "accuracy"
        self.baseline = {
            f"{split} {task.metric}": (
                examples[split].majority_share if accuracy else 0.0
            )
            for split in self._dev
        }

    def build(self, backbone: keras_hub.models.Backbone) -> keras.Model:
        """Returns a task with a new head."""
        plain = self._family.of_keras_hub("TextClassifier")
        return task_class(plain)(
            backbone,
            num_classes=len(self._task.labels),
            dropout=self._recipe.dropout,
        )

    def compile(
        self, task: keras.Model, optimizer: keras.optimizers.Optimizer
    ) -> None:
        """Compiles a task with its loss and metric."""
        if self._task.metric == "accuracy":
            metric = keras.metrics.SparseCategoricalAccuracy(name="accuracy")
        else:
            metric = MatthewsCorrelation(len(self._task.labels))
        task.compile(
            optimizer,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[],
            weighted_metrics=[metric],
            jit_compile=False,
        )

    def evaluate(self, task: keras.Model) -> Evaluated:
        """Returns the figures of all dev sets, from 0 to 1."""
        figures = {}
        for split, batches in self._dev.items():
            logs = task.evaluate(batches, return_dict=True, verbose=0)
            name = self._task.metric
            figures[f"{split} {name}"] = logs[name]
            # Keras divides by all rows, those that fill up a batch, too.
            padded = len(batches) * self._recipe.batch_size
            rows = self._dev_rows[split]
            figures[f"{split} loss"] = logs["loss"] * padded / rows
        return Evaluated(figures)
