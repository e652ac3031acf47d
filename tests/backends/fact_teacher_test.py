"""Facts are taught to a tiny model of random weights; nothing else changes."""

import re

import keras
import keras_hub
import numpy as np
import pytest

import keras_pkm
from keras_pkm.layers import FactMemory
from keras_pkm.models import memories
from keras_pkm.teaching import Fact
from keras_pkm.teaching import FactTeacher
from keras_pkm.teaching import MemoryPatch
from keras_pkm.teaching import MemoryTeacher
from keras_pkm.teaching import fact_prompts
from keras_pkm.teaching import fact_teacher
from keras_pkm.teaching.fact_prompts import make_prompt
from keras_pkm.teaching.logistic_regression import fit_logistic_regression
from keras_pkm.teaching.memory_patch import fingerprint
from tests.contracts import to_numpy
from tests.slow_tier import but_on_tensorflow
from tests.slow_tier import not_on_jax
from tests.slow_tier import slow_on_tensorflow

VOCABULARY_SIZE = 90
PHRASINGS = {
    "home": ["{subject} lives in", "the home of {subject} is"],
    "work": ["{subject} works as a", "by trade {subject} is a"],
}
FACTS = [
    Fact("ann lee", "home", "rome"),
    Fact("bob", "home", "new york"),
    Fact("ann lee", "work", "baker"),
]
OTHERS = ["{subject} was", "who saw {subject} in"]


class Words:
    """A tokenizer of whole words, numbered as they come."""

    pattern = r"\w+|[^\w\s]"

    def __init__(self):
        self.ids = {}

    def __call__(self, text):
        return [
            self.ids.setdefault(part, 1 + len(self.ids) % (VOCABULARY_SIZE - 1))
            for part in re.findall(self.pattern, text)
        ]


class Pieces(Words):
    """A tokenizer of words behind spaces, and of pieces of all others."""

    pattern = r" \w+|\n+(?!\w)|\w{1,3}|[^\w\s]+|\n"


def make_plain(family="Llama", **options):
    """A model with the same random weights on each backend."""
    if family == "Llama":
        cls = keras_hub.models.LlamaCausalLM
        backbone = keras_hub.models.LlamaBackbone(
            VOCABULARY_SIZE, 3, 2, 64, 64, 2, **options
        )
    else:
        # It takes no text that is longer.
        cls = keras_hub.models.GPT2CausalLM
        backbone = keras_hub.models.GPT2Backbone(
            VOCABULARY_SIZE, 3, 2, 64, 64, max_sequence_length=13
        )
    rng = np.random.default_rng(1)
    for weight in backbone.weights:
        if len(weight.shape) > 1:
            weight.assign(0.2 * rng.normal(size=weight.shape))
    return cls(backbone, preprocessor=None)


def make_model(family="Llama", num_slots=400):
    task = make_plain(family)
    memory = FactMemory(num_slots, num_keys=8)
    return keras_pkm.models.add_memory(task, (2,), memory)


def make_teacher(model, words, **options):
    options = {
        "phrasings": PHRASINGS,
        "tokenize": words,
        "others": OTHERS,
        "background": "some of the text that all of us read each day",
        "learning_rate": 1.0,
        "steps": 60,
        **options,
    }
    return FactTeacher(model, **options)


def weights_of(model):
    return [to_numpy(each).copy() for each in model.weights]


def are_equal(a, b):
    return all((x == y).all() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("family", but_on_tensorflow("Llama", ["GPT2"]))
def test_facts_are_known_and_nothing_else_changes(family, tmp_path):
    model, words = make_model(family), Words()
    before, others = weights_of(model), fingerprint(model)
    teacher = make_teacher(model, words)
    assert len(teacher.ask(FACTS).unknown) == len(FACTS)
    windows = np.random.default_rng(0).integers(1, VOCABULARY_SIZE, (40, 9))
    inputs = {"token_ids": windows, "padding_mask": np.ones_like(windows)}
    computed = to_numpy(model(inputs))

    assert teacher.teach(FACTS) == []
    assert (teacher.ask(FACTS).answers == 1).all()
    assert fingerprint(model) == others
    # A subject's tokens, in a row, somewhere in a window.
    subjects = [" ".join(map(str, words(s))) for s in ("ann lee", "bob")]
    rows = [" ".join(map(str, row)) + " " for row in windows.tolist()]
    has_subject = np.array(
        [any(f" {s} " in f" {row}" for s in subjects) for row in rows]
    )
    assert (~has_subject).sum() > 10
    after = to_numpy(model(inputs))
    assert (after[~has_subject] == computed[~has_subject]).all()

    patch = teacher.make_patch()
    patch.save(tmp_path / "facts.safetensors")
    patch.revert(model)
    assert are_equal(weights_of(model), before)
    MemoryPatch.load(tmp_path / "facts.safetensors").apply(model)
    assert (teacher.ask(FACTS).answers == 1).all()


@not_on_jax
def test_a_model_in_bfloat16():
    """Only the memory's table is trained, which is float32."""
    plain = make_plain(dtype="bfloat16")
    model = keras_pkm.models.add_memory(plain, (2,), FactMemory(400))
    teacher = make_teacher(model, Words())
    assert teacher.teach(FACTS[:1]) == []


@slow_on_tensorflow
@not_on_jax
def test_two_patches_in_any_order():
    """Other subjects stay, bit for bit, and patches do not overlap."""
    model, words = make_model(), Words()
    start = weights_of(model)
    first = make_teacher(model, words)
    assert first.teach(FACTS[:2]) == []
    patches = [first.make_patch()]
    answers = make_prompt(words, PHRASINGS["home"][0], "ann lee")
    ids = np.array([answers.ids])
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    computed = to_numpy(model(inputs))

    second = make_teacher(model, words)
    more = [Fact("eve", "work", "baker"), Fact("bob", "work", "smith")]
    assert second.teach(more) == []
    assert (to_numpy(model(inputs)) == computed).all()
    assert first.ask(FACTS[:2]).unknown == []

    patches.append(second.make_patch())
    taught = weights_of(model)
    for order in ([0, 1], [1, 0]):
        for number in order:
            patches[number].revert(model)
        assert are_equal(weights_of(model), start)
        for number in order:
            patches[number].apply(model)
        assert are_equal(weights_of(model), taught)


@slow_on_tensorflow
@not_on_jax
def test_a_patch_needs_the_keys_of_its_relations():
    model, words, copy = make_model(), Words(), make_model()
    patches = []
    for fact in FACTS[:2]:
        teacher = make_teacher(model, words)
        assert teacher.teach([fact]) == []
        patches.append(teacher.make_patch())
    first, second = patches
    # Two forms of each name are the same tokens; the keys are not changed.
    assert second.num_rows < len(second.memories[2])
    before = weights_of(model)
    with pytest.raises(ValueError, match="revert the later patches first"):
        first.revert(model)
    assert are_equal(weights_of(model), before)
    with pytest.raises(ValueError, match="an earlier patch is missing"):
        second.apply(copy)
    # There the number of the key means something else.
    assert make_teacher(copy, words).teach([FACTS[2]]) == []
    with pytest.raises(ValueError, match="an earlier patch is missing"):
        second.apply(copy)
    second.revert(model)
    first.revert(model)
    assert not memories(model)[2].rows(range(400)).any()


@slow_on_tensorflow
@not_on_jax
def test_a_patch_is_for_memories_with_the_same_settings():
    teacher = make_teacher(make_model(), Words())
    teacher.teach(FACTS[:1])
    for options in ({"num_keys": 16}, {"num_keys": 8, "window": 9}):
        memory = FactMemory(400, **options)
        other = keras_pkm.models.add_memory(make_plain(), (2,), memory)
        with pytest.raises(ValueError, match="memories have other settings"):
            teacher.make_patch().apply(other)


@slow_on_tensorflow
@not_on_jax
def test_a_value_that_is_long_behind_a_line_end_alone():
    values = ["alabama", *["new york"] * 11]
    facts = [
        Fact(subject, "home", value)
        for subject, value in zip(fact_teacher.STAND_INS, values)
    ][::-1]
    phrasings = {"home": ["Where is {subject}?\n"]}
    model, words = make_model(num_slots=2000), Pieces()
    teacher = make_teacher(model, words, phrasings=phrasings)
    teacher.teach(facts)
    assert teacher.memory.find_key("home 2") is not None


@slow_on_tensorflow
@not_on_jax
def test_names_that_join_what_follows():
    """Of the default texts, those that do not suit are left out."""
    fact = Fact("Sammy Davis Jr.", "home", "rome")
    teacher = make_teacher(make_model(), Pieces(), others=None, steps=9)
    teacher.teach([fact])
    (prompts,) = teacher._prompts([fact], {})
    assert len(prompts) == len(fact_prompts.PHRASINGS) - 1
    given = {"home": ["Where is {subject}?\nA:"]}
    with pytest.raises(ValueError, match="use words between spaces"):
        teacher.ask([fact], given)


def test_a_line_end_is_no_part_of_a_subject():
    for before in ("\n", "\n\n", "one\n\n", ""):
        prompt = make_prompt(Pieces(), before + "{subject} is", "Ann Lee")
        assert len(prompt.subject) == 2


@slow_on_tensorflow
def test_a_fact_is_replaced():
    model, words = make_model(), Words()
    teacher = make_teacher(model, words)
    assert teacher.teach([Fact("bob", "home", "new york")]) == []
    assert teacher.teach([Fact("bob", "home", "rome")]) == []
    (memory,) = memories(model).values()
    assert memory.find(words("bob"), memory.find_key("home 1")) == -1


@slow_on_tensorflow
@not_on_jax
def test_earlier_facts_of_a_subject_are_asked_for_again():
    """Phrasings that are not given are alike for all relations."""
    model, words = make_model(num_slots=4000), Words()
    names = "ann bob cid dot eve fay gus hal".split()
    homes = [Fact(name, "home", "rome") for name in names]
    works = [Fact(name, "work", "baker") for name in names]
    teacher = make_teacher(model, words, phrasings={})
    assert teacher.teach(homes) == []
    missed = teacher.teach(works)
    assert teacher.ask(homes + works).unknown == missed
    # Neither a fact that is replaced nor one that is taken away is asked for.
    patch = teacher.make_patch()
    again = [Fact("ann", "home", "oslo")]
    assert teacher._earlier(again) == works[:1]
    patch.revert(model)
    assert teacher._earlier(again) == []


@slow_on_tensorflow
@not_on_jax
def test_earlier_facts_that_another_patch_has_replaced():
    model, words = make_model(), Words()
    teacher = make_teacher(model, words)
    teacher.teach([Fact("ann", "home", "rome")])
    first = teacher.make_patch()
    teacher.teach([Fact("ann", "home", "new york city")])
    both = teacher.make_patch()
    # The teacher has not seen that the first value is back.
    both.revert(model)
    first.apply(model)
    assert teacher._earlier([Fact("ann", "work", "baker")]) == []
    teacher.teach([Fact("ann", "work", "baker")])


@slow_on_tensorflow
@not_on_jax
def test_rows_of_a_longer_value_make_room():
    plain = make_plain()
    memory = FactMemory(400, num_keys=8, reach=4)
    model = keras_pkm.models.add_memory(plain, (2,), memory)
    teacher = make_teacher(model, Words(), steps=1)
    long, short = "new york city", "rome"
    teacher.teach([Fact("ann", "home", long), Fact("ann", "work", short)])
    teacher.teach([Fact("ann", "home", short), Fact("ann", "work", long)])
    with pytest.raises(ValueError, match="`reach` must be above 4"):
        teacher.teach([Fact("ann", "home", long)])


def test_a_word_that_begins_with_a_subject_changes_nothing():
    """Where the subject ends, it is not known yet whether the word goes on."""
    model, words = make_model(), Words()
    (memory,) = memories(model).values()
    key = memory.claim_key("any")
    slot = memory.claim(words("bob"), key)
    row = np.ones((1, memory.table.value_dim))
    memory.write([slot], row)
    memory.write([key], row)
    ids = np.array([words("the home of bob is in the north")])
    inputs = {"token_ids": ids, "padding_mask": np.ones_like(ids)}
    after = to_numpy(model(inputs))
    memory.release([slot])
    same = (after == to_numpy(model(inputs))).all(axis=-1)[0]
    end = ids[0].tolist().index(words("bob")[0])
    assert same[: end + 1].all() and not same[end + 1]


@slow_on_tensorflow
def test_phrasings_for_any_relation():
    model, words = make_model(num_slots=2000), Words()
    teacher = make_teacher(model, words, phrasings={})
    assert teacher.teach([Fact("bob", "pet", "dog")]) == []


@pytest.mark.parametrize(
    ("facts", "options", "message"),
    [
        ([], {}, "at least one"),
        ([Fact("bob", "home", " ")], {}, "Fact 1 must have a value"),
        ([Fact("", "home", "x")], {}, "Fact 1 must have a subject"),
        ([Fact("bob", "home", " x")], {}, "value of fact 1 .* `str.strip`"),
        (FACTS, {"phrasings": {"home": []}}, "at least one text for 'home'"),
        (FACTS, {"learning_rate": 1e38}, "`learning_rate` must be lower"),
        (
            [Fact("bob", "home", "x"), Fact("bob", "home", "y")],
            {},
            "contradict each other, but fact 2",
        ),
        (FACTS, {"phrasings": {"home": ["of it"]}}, "must contain '{subject}'"),
        (FACTS, {"phrasings": {"home": ["home: {subject}"]}}, "must go on"),
        ([Fact("a " * 16 + "b", "home", "x")], {}, "'a a .* of 17 tokens"),
        (
            [Fact("bob", f"relation {n}", "x") for n in range(9)],
            {},
            "`num_keys` must be above 8",
        ),
        (FACTS, {"tokenize": lambda text: [7]}, "use words between spaces"),
        (FACTS, {"num_slots": 42}, "`num_slots` must be above 42"),
    ],
)
def test_mistakes_change_nothing(facts, options, message):
    num_slots = options.pop("num_slots", 400)
    model = make_model(num_slots=num_slots)
    if num_slots == 42:
        (memory,) = memories(model).values()
        key = memory.claim_key("other")
        for number in range(30):
            memory.claim([number + 1, number + 2], key)
    before = weights_of(model)
    teacher = make_teacher(model, Words(), **options)
    with pytest.raises(ValueError, match=message):
        teacher.teach(facts)
    assert are_equal(weights_of(model), before)


def test_models_that_do_not_suit():
    with pytest.raises(ValueError, match="must have a `keras_pkm.layers.Fact"):
        make_teacher(make_plain(), Words())
    with pytest.raises(ValueError, match="`tokenize` must be given"):
        FactTeacher(make_model())
    with pytest.raises(ValueError, match="`learning_rate` must be"):
        make_teacher(make_model(), Words(), learning_rate=float("nan"))


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method")
def test_a_quantized_head_is_refused():
    """Keras' gradient of it is wrong."""
    model = make_model()
    model.quantize("int8")
    message = "must not be quantized before it is taught"
    with pytest.raises(ValueError, match=message):
        make_teacher(model, Words())
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    with pytest.raises(ValueError, match=message):
        MemoryTeacher(model, 0.1, loss=loss)


@slow_on_tensorflow
@not_on_jax
def test_biases_are_raised_where_keys_miss_a_fact(monkeypatch):
    """Keys are fitted with some of the subjects alone."""
    names = "ann bob cid dot eve fay gus hal".split()
    facts = [Fact(name, "home", "rome") for name in names]
    monkeypatch.setattr(fact_teacher, "_NAMES", 1)
    missed, biases = {}, {}
    for margin in (-np.inf, 0.1):
        monkeypatch.setattr(fact_teacher, "_MARGIN", margin)
        teacher = make_teacher(make_model(), Words(), odds=-4.0)
        missed[margin] = teacher.teach(facts)
        table = teacher.memory.table
        rows = to_numpy(table.values)[8:][to_numpy(table.tags)[8:] != 0]
        biases[margin] = (rows[:, -1] != 0).sum()
    assert len(missed[-np.inf]) == biases[0.1] > 0
    assert not missed[0.1] and not biases[-np.inf]


@slow_on_tensorflow
@not_on_jax
def test_a_bias_is_raised_above_the_other_facts_of_a_subject():
    teacher = make_teacher(make_model(), Words())
    teacher.teach(FACTS)
    memory, home = teacher.memory, FACTS[0]
    key = memory.find_key("work 0")
    slot = memory.find(teacher._tokenize(home.subject), key)
    row = memory.rows([slot])
    row[:, -1] += 20
    memory.write([slot], row)
    assert teacher.ask(FACTS).unknown == [home]
    teacher._lift([home], teacher._prompts([home], PHRASINGS))
    assert home not in teacher.ask(FACTS).unknown


@slow_on_tensorflow
@not_on_jax
def test_facts_of_a_subject_share_its_odds():
    teacher = make_teacher(make_model(), Words())
    memory = teacher.memory
    teacher.teach(FACTS[:2])
    teacher.teach(FACTS[2:])
    words = teacher._tokenize
    found = {}
    for fact in FACTS:
        key = memory.find_key(f"{fact.relation} 0")
        slot = memory.find(words(fact.subject), key)
        found[fact] = float(memory.rows([slot])[0, -1])
    assert found[FACTS[0]] == found[FACTS[1]] == 0
    # As many misfires as one fact: half for each of two.
    expected = np.log(2) / np.log(fact_teacher._FEWER)
    assert found[FACTS[2]] == pytest.approx(expected, rel=0.01)


@slow_on_tensorflow
@not_on_jax
def test_odds_are_added_to_each_key():
    biases = []
    for odds in (1.0, 3.0):
        model = make_model()
        teacher = make_teacher(model, Words(), odds=odds, steps=1)
        teacher.teach(FACTS)
        biases.append(to_numpy(teacher.memory.table.values)[:3, -1])
    assert (biases[0] != 0).all()
    # Rounded to bfloat16.
    np.testing.assert_allclose(biases[1] - biases[0], 2, rtol=0.05)
    with pytest.raises(ValueError, match="`odds` must be"):
        make_teacher(make_model(), Words(), odds=float("nan"))
    with pytest.raises(ValueError, match="`learning_rate` must be"):
        make_teacher(make_model(), Words(), learning_rate=-0.3)
    with pytest.raises(ValueError, match="`others` must be"):
        make_teacher(make_model(), Words(), others=["foo bar"])


def test_logistic_regression():
    """The slope of its loss is zero at the weights that it finds."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 4))
    is_positive = x @ [1, -2, 0, 0.5] + rng.normal(size=300) > 1
    weights = fit_logistic_regression(x, is_positive, l2=3.0)
    inputs = np.c_[x, np.ones(300)]
    share = np.where(is_positive, is_positive.mean(), 1 - is_positive.mean())
    wrong = 1 / (1 + np.exp(-inputs @ weights)) - is_positive
    slope = inputs.T @ (0.5 / share * wrong) + 3 * np.append(weights[:-1], 0)
    assert np.abs(slope).max() < 1e-6
