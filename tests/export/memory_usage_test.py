"""Usage of exported models is that of the trained ones."""

import json

import numpy as np
import pytest

from export import memory_usage
from export.commands.source import Source
from keras_pkm import models
from keras_pkm.export.encoder import Encoder

LINES = ["the quick brown fox", "ann met bob in paris .", "who ?"] * 5


# Its exports take a minute to make.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(LINES))
    return path


def measure(args, capsys):
    assert memory_usage.main(args.split()) == 0
    return json.loads(capsys.readouterr().out)


def test_encoder(exports, presets, tokenizer, text, capsys):
    preprocessor = f"--preprocessor {exports / 'preprocessor'}"
    args = f"--model {exports / 'encoder'} --text {text} --json --batch-size 4"
    found = measure(f"{args} {preprocessor}", capsys)
    backbone = Source.open(str(presets / "mlm")).load("encoder").backbone
    ids = [[2, *tokenizer(line), 3] for line in LINES]
    length = max(map(len, ids))
    x = {
        "token_ids": np.array([row + [0] * (length - len(row)) for row in ids]),
        "segment_ids": np.zeros((len(ids), length)),
    }
    x["padding_mask"] = (x["token_ids"] != 0).astype("int32")
    expected = models.MemoryProbe(backbone).measure([x])
    for number, figures in expected.items():
        for name, value in figures.items():
            assert found[str(number)][name] == pytest.approx(value, abs=1e-5)
    assert Encoder(backbone).tables.keys() == expected.keys()


@pytest.mark.parametrize("kind", ["mlm", "classifier", "qa"])
def test_text_models(exports, text, capsys, kind):
    args = f"--model {exports / kind} --text {text} --json"
    found = measure(args, capsys)
    assert found.keys() == {"1", "3"}
    assert 0 < found["1"]["top1_mu"] < found["1"]["mu"] <= 1


def test_the_table(exports, text, capsys):
    assert (
        memory_usage.main(f"--model {exports / 'mlm'} --text {text}".split())
        == 0
    )
    assert "| memory layer | slots |" in capsys.readouterr().out


def test_refused(exports, text, tmp_path, capsys):
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    for args, message in (
        (
            f"{exports / 'encoder'} --text {text}",
            "takes no text: pass a preprocessor",
        ),
        (
            f"{exports / 'preprocessor'} --text {text}",
            "has no signature memory_access",
        ),
        (
            f"{tmp_path} --text {text}",
            "is not the directory of an exported model",
        ),
        (
            f"{exports / 'encoder'} --text {text} --preprocessor "
            f"{exports / 'mlm'}",
            "must be an exported preprocessor, which returns",
        ),
        (
            f"{exports / 'mlm'} --text {text} --preprocessor nowhere",
            "takes text itself",
        ),
        (f"{exports / 'mlm'} --text {empty}", "must contain text"),
        (f"{exports / 'mlm'} --text no.txt", "'no.txt' is not (No such"),
    ):
        assert memory_usage.main(f"--model {args}".split()) == 2
        assert message in capsys.readouterr().err
