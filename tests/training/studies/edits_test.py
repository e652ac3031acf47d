"""Ways to teach a finished model, compared on a tiny one."""

import dataclasses
import json
import random
import re

import keras
import keras_hub
import pytest

from keras_pkm.files.presets import save_preset
from keras_pkm.teaching.fact_prompts import OTHERS
from tests.training.studies.run_here import run_here
from training.corpora.byte_pairs import train_byte_pairs
from training.facts.invented import invented
from training.runs.user_error import UserError
from training.studies import study
from training.studies.edits import material
from training.studies.edits import study as edits_study
from training.studies.edits.material import make_material
from training.studies.edits.recipe import EditsRecipe
from training.studies.edits.report import best_of
from training.studies.edits.report import make_report
from training.studies.edits.study import EditsStudy
from training.studies.edits.study import try_way
from training.studies.edits.ways import WAYS
from training.teach import main

# Ways whose parts others have: LoRA with replay, all weights without it, rows
# behind three layers, chosen slots.
WITHIN = ("lora-8", "lora-64", "ngram", "replay", "product-keys")
FLAGS = "--facts 2 --relations 2 --passes 2 --quick"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The preset of a plain model."""
    kind = keras_hub.models.GPT2Tokenizer
    # Subjects must have no more tokens than memories have orders.
    names = " ".join(invented()["first_names"] + invented()["last_names"])
    tokenizer = train_byte_pairs([names] * 3, 600, kind, progress=False)
    keras.utils.set_random_seed(0)
    plain = keras_hub.models.GPT2Backbone(
        vocabulary_size=tokenizer.vocabulary_size(),
        num_layers=3,
        num_heads=2,
        hidden_dim=32,
        intermediate_dim=32,
        dropout=0.0,
        max_sequence_length=1024,
    )
    path = tmp_path_factory.mktemp("presets") / "plain"
    preprocessor = keras_hub.models.GPT2CausalLMPreprocessor(
        tokenizer, sequence_length=24
    )
    save_preset(keras_hub.models.GPT2CausalLM(plain), preprocessor, path)
    return str(path)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Documents that take less time than Python's."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    rng = random.Random(0)
    words = "the file is read by a function that returns its lines".split()
    documents = [" ".join(rng.choices(words, k=300)) for _ in range(60)]
    path.write_text("\n\n".join(documents))
    return str(path)


def recipe_for(model, tmp_path, **others):
    sizes = {"facts": 4, "relations": 2, "passes": 2, "groups": 2}
    return EditsRecipe(model=model, out=tmp_path, **{**sizes, **others})


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in WAYS if way not in WITHIN])
def test_a_way(way, model, text, tmp_path, monkeypatch):
    monkeypatch.setattr(material, "_QUESTIONS", 12)
    if way != "facts":
        # A pass of the plain model takes seconds to trace, in each way again.
        monkeypatch.setattr(edits_study, "time_a_pass", lambda *_: 1.0)
    recipe = recipe_for(model, tmp_path, text=text)
    rate = EditsStudy(recipe).rates(way)[0]
    found = try_way(recipe, way, rate, seed=0)
    assert len(found["steps"]) == len(found["each group then"]) == 2
    for kind in ("near", "far", "known"):
        same = found["same"][kind]
        if way in ("facts", "ngram-three", "prompt-all"):
            assert same == {"same": 1, "bits": 1}
        elif way not in ("prompt-one", "product-keys-slots"):
            assert same["bits"] < 1
    text = found["text"]
    is_untouched = text["perplexity_after"] == text["perplexity_before"]
    assert is_untouched == (text["divergence"] == 0)
    if way == "facts":
        assert found["taught"] > found["untaught"]["taught"]
    assert (found["bytes"] > 0) == (not way.startswith("prompt"))
    assert bool(found["seconds of a pass"]) == (not way.startswith("prompt"))


@pytest.mark.slow
def test_the_command(model, text, tmp_path, capsys):
    out = tmp_path / "edits"
    flags = f"--compare-edits --model {model} --out {out} {FLAGS} --text {text}"
    flags += " --odds 3 --seeds 1 --ways prompt-one"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study, "run_jobs", run_here)
        assert main(flags.split()) == 0
    # The way that is added has a process of its own.
    flags += " facts"
    assert main(flags.split()) == 0
    found = json.loads((out / "report.json").read_text())
    assert [*found["ways"]] == ["prompt-one", "facts"]
    for way in found["ways"].values():
        assert len(way["tried"][0]["seeds"]) == 1
    assert "memory of facts" in capsys.readouterr().out
    again = flags.replace("--passes 2", "--passes 3")
    assert main(again.split()) == 2
    assert "passes" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(f"--compare {flags}".split())


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--facts-per-subject 3 --relations 2", "at most --relations, 2"),
        ("--facts 3 --groups 4", "at most the number of facts, 3"),
        ("--quick --groups 11", "at most the number of facts, 10"),
        ("--facts 5000", "--facts must be at most 4000"),
        ("--taught-phrasings 6", "--taught-phrasings must be at most 5"),
        ("--relations 11", "--relations must be"),
        ("--text /nowhere.txt", "nowhere.txt"),
    ],
)
def test_mistakes(flags, message, model, tmp_path, capsys):
    out = tmp_path / "edits"
    command = f"--compare-edits --model {model} --out {out} {flags}"
    assert main(command.split()) == 2
    assert message in capsys.readouterr().err
    assert not (out / "trials").exists()


def test_the_material(tmp_path):
    recipe = recipe_for("m", tmp_path, facts=60, relations=5)
    for each in (1, 3):
        recipe = recipe_for(
            "m", tmp_path, facts=60, relations=5, facts_per_subject=each
        )
        material = make_material(recipe, 0)
        facts = material.facts
        assert len(facts) == len({fact[:2] for fact in facts}) == 60
        subjects = {fact.subject for fact in facts}
        assert len(subjects) == 60 // each
        assert len({fact.relation for fact in facts}) == 5
        parts = {part for subject in subjects for part in subject.split()}
        for question in material.same["near"]:
            assert question.subject not in subjects
            assert parts & set(question.subject.split())
        for question in material.same["far"]:
            assert not parts & set(question.subject.split())
        asked = {
            (fact.subject, text)
            for fact in facts
            for text in material.asked[fact.relation]
        }
        for text, subject in material.same["other"]:
            assert subject in subjects
            assert (subject, text) not in asked
        taught = sum(material.taught.values(), [])
        assert not set(taught) & set(sum(material.asked.values(), []))
    assert make_material(recipe, 0) == material
    assert {len(texts) for texts in material.taught.values()} == {5}
    one = make_material(dataclasses.replace(recipe, taught_phrasings=1), 0)
    assert one.taught == {k: texts[:1] for k, texts in material.taught.items()}
    assert (one.facts, one.asked) == (material.facts, material.asked)
    # Each name shares a part with a subject then.
    many = make_material(recipe_for("m", tmp_path, facts=1000), 0)
    assert "far" not in many.same and many.same["near"]
    assert make_material(recipe, 1).facts != facts


def test_the_best_rate_taught_what_it_should():
    def tried(taught, paraphrase, near):
        seed = {
            "each group then": [{"taught": taught}, {"taught": 1.0}],
            "paraphrase": paraphrase,
            "same": {"near": {"same": near}},
        }
        return {"seeds": [seed]}

    assert best_of([tried(1, 0.5, 0.5), tried(0.8, 1, 1)]) == 0
    assert best_of([tried(1, 0.5, 0.5), tried(0.9, 0.9, 0.3)]) == 1
    assert best_of([tried(0.9, 0.5, 0.5), tried(1, 0.9, 0.3)]) == 1
    assert best_of([tried(0.2, 0.5, 0.5), tried(0.8, 1, 1)]) == 1


def test_facts_of_all_relations(tmp_path):
    """There is no other relation to ask a subject for, or to plot."""
    recipe = recipe_for(
        "m", tmp_path, facts=20, relations=10, facts_per_subject=10
    )
    same = make_material(recipe, 0).same
    assert "other" not in same
    seed = {
        **{name: 1.0 for name in ("known", "paraphrase", "document")},
        "same": {kind: {"same": 1.0, "bits": 1.0} for kind in same},
        "text": {"change": 0.0, "divergence": 0.0},
        "untaught": {"taught": 0.0},
        "first group": {
            when: {"taught": 1.0, "paraphrase": 1.0}
            for when in ("then", "at the end")
        },
        **{name: 0 for name in ("seconds", "seconds of preparing", "bytes")},
        "steps": [0],
    }
    tried = [{"rate": 3.0, "seeds": [seed]}]
    way = {"title": "facts", "tried": tried, "best": 0}
    report = make_report(recipe, {"ways": {"facts": way}})
    assert "-" in report.tables[0].rows[0]


def test_trials_that_were_measured_on_other_text(model, tmp_path, capsys):
    out = tmp_path / "edits"
    (out / "trials").mkdir(parents=True)
    study = EditsStudy(recipe_for(model, out, ways=("facts",)))
    study.write_recipe()
    study.trial("facts-seed-0").write_text('{"text": {"change": 0.1}}')
    with pytest.raises(UserError, match="facts-seed-0.json' was measured on"):
        study.run()


def test_the_first_seed_tries_all_rates(model, tmp_path):
    """And the others the one that was the best with it."""
    recipe = recipe_for(model, tmp_path, ways=("facts",), seeds=3)
    jobs = EditsStudy(recipe).jobs()
    first, others = jobs[:2], jobs[2:]
    assert all(job.needs == tuple(f.result for f in first) for job in others)
    taught = [{"taught": 1.0}]
    for number, job in enumerate(jobs):
        paraphrase = (0.5, 0.25, 0.3, 0.2)[number]
        found = {
            "paraphrase": paraphrase,
            "same": {"near": {"same": 1.0}},
            "each group then": taught,
        }
        job.result.parent.mkdir(exist_ok=True)
        job.result.write_text(json.dumps(found))
    way = EditsStudy(recipe).collect()["ways"]["facts"]
    assert way["best"] == 0
    best, other = way["tried"]
    assert [seed["paraphrase"] for seed in best["seeds"]] == [0.5, 0.3, 0.2]
    assert [seed["paraphrase"] for seed in other["seeds"]] == [0.25]


def test_what_must_remain_is_asked_in_words_that_keys_have_not_seen():
    """But for those of grammar."""
    grammar = set("is was a the of in to at with by for as about on q".split())
    grammar |= set("what s are that where".split())

    def words(texts):
        found = re.findall("[a-z]+", " ".join(texts).lower())
        return set(found) - grammar - {"subject"}

    asked = words(invented()["never_named"] + invented()["two_steps"])
    assert not asked & words(OTHERS)
