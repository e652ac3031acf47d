"""Tiny models, and data that say plainly what is what."""

import json

import keras
import keras_hub
import numpy as np
import pytest

from keras_pkm.files.presets import save_preset
from tests.models.tiny import tiny_masked_lm
from training.finetune import main

WORDS = "good bad fine poor great awful film play story end".split()


@pytest.fixture(scope="package")
def tokenizer():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = [*special, *WORDS, *(f"w{i}" for i in range(85))]
    return keras_hub.models.BertTokenizer(words, lowercase=True)


@pytest.fixture(scope="package")
def presets(tmp_path_factory, tokenizer):
    """A plain BERT and two with memory, as masked-LM presets."""
    root = tmp_path_factory.mktemp("presets")
    for name, num_layers, memory_layers in (
        ("plain", 2, ()),
        ("resm", 2, (2,)),
        # Traced in half of the time.
        ("small", 1, (1,)),
    ):
        keras.utils.set_random_seed(0)
        task = tiny_masked_lm(
            num_layers=num_layers, memory_layers=memory_layers
        )
        preprocessor = keras_hub.models.BertMaskedLMPreprocessor(
            tokenizer, sequence_length=12
        )
        save_preset(task, preprocessor, root / name)
    return root


@pytest.fixture(scope="package")
def glue(tmp_path_factory):
    """A word decides each task."""
    root = tmp_path_factory.mktemp("GLUE")
    rng = np.random.default_rng(0)
    good, bad = WORDS[0:6:2], WORDS[1:6:2]

    def sentence(label):
        words = list(rng.choice(WORDS[6:], 3))
        words.insert(rng.integers(4), str(rng.choice(good if label else bad)))
        return " ".join(words)

    for name, files, header, row in (
        (
            "SST-2",
            ("train", "dev"),
            "sentence\tlabel\n",
            lambda label: f"{sentence(label)}\t{label}\n",
        ),
        (
            "CoLA",
            ("train", "dev"),
            "",
            lambda label: f"x\t{label}\t\t{sentence(label)}\n",
        ),
        (
            "MNLI",
            ("train", "dev_matched", "dev_mismatched"),
            "index\tsentence1\tsentence2\tgold_label\n",
            lambda label: (
                f"0\t{sentence(label)}\t{sentence(1)}\t"
                f"{['neutral', 'entailment'][label]}\n"
            ),
        ),
    ):
        (root / name).mkdir()
        for file in files:
            rows = [row(int(label)) for label in rng.integers(0, 2, 64)]
            (root / name / f"{file}.tsv").write_text(header + "".join(rows))
    return root


@pytest.fixture(scope="package")
def squad(tmp_path_factory):
    """The answer follows the word "film"."""
    root = tmp_path_factory.mktemp("squad")
    rng = np.random.default_rng(0)
    for split in ("train", "dev"):
        paragraphs = []
        for number in range(48):
            words = list(rng.choice(WORDS[:6], 5))
            answer = str(rng.choice([f"w{i}" for i in range(20)]))
            place = rng.integers(6)
            words[place:place] = ["film", answer]
            context = " ".join(words)
            start = context.index(f"film {answer}") + 5
            paragraphs.append(
                {
                    "context": context,
                    "qas": [
                        {
                            "id": f"{split}{number}",
                            "question": "film",
                            "answers": [
                                {"text": answer, "answer_start": start}
                            ],
                        }
                    ],
                }
            )
        data = {"version": "1.1", "data": [{"paragraphs": paragraphs}]}
        (root / f"{split}-v1.1.json").write_text(json.dumps(data))
    return root


@pytest.fixture
def finetune(presets, tmp_path):
    """Runs the command, and returns its results if it ends well."""

    def finetune(data, model, flags="", task="sst2", code=0, name="run"):
        args = (
            f"--task {task} --model {presets / model} "
            f"--{'squad' if task == 'squad' else 'glue'} {data} "
            f"--out {tmp_path / name} --batch-size 16 --epochs 2 "
            f"--learning-rate 5e-3 --dropout 0 {flags}"
        )
        assert main(args.split()) == code
        if code:
            return None
        return json.loads((tmp_path / name / "results.json").read_text())

    return finetune
