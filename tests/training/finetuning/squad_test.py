"""The command on SQuAD, and the callback that keeps the best answers."""

import json
import types

import pytest

from keras_pkm import models
from tests.markdown import squeezed
from training.finetuning import seed as finetuning_seed
from training.finetuning.kind import Evaluated
from training.finetuning.seed import SeedProgress
from training.runs.run_directory import SeedDirectory
from training.tasks.squad_score import squad_score


@pytest.mark.slow
def test_squad(finetune, squad, tmp_path):
    results = finetune(
        squad,
        "resm",
        "--epochs 40 --stride 4 --answer-length 3",
        "squad",
    )
    summary = results["summary"]
    assert summary["dev F1"]["median"] > 0.8
    assert list(summary) == ["dev exact match", "dev F1"]
    text = (tmp_path / "run" / "results.md").read_text()
    assert "| the paper's +Init+ResM | 83.9 | 90.8 |" in squeezed(text)
    seed = tmp_path / "run" / "seed-0"
    predictions = json.loads((seed / "predictions.json").read_text())
    assert len(predictions) == 48
    gold = json.loads((squad / "dev-v1.1.json").read_text())["data"][0]
    answers = {
        qas["id"]: [answer["text"] for answer in qas["answers"]]
        for paragraph in gold["paragraphs"]
        for qas in paragraph["qas"]
    }
    score = squad_score(predictions, answers)
    assert score["f1"] / 100 == summary["dev F1"]["median"]
    best = json.loads((seed / "nbest_predictions.json").read_text())
    assert best["dev0"][0]["text"] == predictions["dev0"]
    task = models.QuestionAnswerer.from_preset(str(seed / "best"))
    assert isinstance(task, models.MemoryBertQuestionAnswerer)


def test_keeps_what_the_best_epoch_said(tmp_path, monkeypatch):
    saved = []
    monkeypatch.setattr(
        finetuning_seed,
        "save_preset",
        lambda model, preprocessor, path: saved.append(path),
    )
    checkpoint = types.SimpleNamespace(state=SeedProgress())
    scores = iter([0.5, 0.7, 0.7, 0.6])

    def evaluate(model):
        score = next(scores)
        return Evaluated({"dev F1": score}, {"predictions.json": str(score)})

    kind = types.SimpleNamespace(
        evaluate=evaluate, decides="dev F1", preprocessor=None
    )
    callback = finetuning_seed.EvaluateDevSets(
        checkpoint, kind, SeedDirectory(tmp_path)
    )
    for epoch in range(4):
        callback.on_epoch_end(epoch)
    assert checkpoint.state.best == 2
    assert saved == 2 * [tmp_path / "best"]
    assert (tmp_path / "predictions.json").read_text() == "0.7"
