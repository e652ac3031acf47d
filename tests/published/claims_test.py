"""Figures in sentences: they are those of the stored trials."""

import re
import statistics

import pytest

from benchmarks.published.figures import MEASURED
from benchmarks.published.tables import read
from tests.docs.pages import ROOT

README, START = "README.md", "docs/index.md"
CAPACITY, TEACHING = "docs/results/capacity.md", "docs/results/teaching.md"
EDITS, WHICH = "docs/results/edits.md", "docs/which-when.md"
OPTIMIZER = "docs/how-it-works/optimizer.md"
PAPER, SPEED = "docs/results/paper.md", "docs/results/speed.md"


def stored(path):
    return read(MEASURED / path)


def percent(share, digits=1):
    return f"{100 * share:.{digits}f} %"


def facts():
    """What models know, in a given time."""
    known = stored("recall/report.json")["candidates"]
    sweep = {
        (each["candidate"], each["num_sub_keys"], each["facts"]): each
        for each in stored("recall/report.json")["sweep"]
    }
    (plain,) = (
        each for key, each in sweep.items() if key[::2] == ("plain", 30_000)
    )
    for kind, size, number in (("resm", 256, 60_000), ("resm", 512, 120_000)):
        assert sweep[kind, size, number]["recall"] >= 0.95
    wide, resm = known["wide-parameters"], known["resm"]
    saw = f"saw each fact {wide['exposures']:.1f} times, in {wide['steps']}"
    learns = f"it learns {percent(plain['recall'])}"
    bits, of_plain = (
        f"{each['bits'] / each['parameters']:.2f}"
        for each in (resm, known["plain"])
    )
    yield (README, START), f"{saw} steps"
    yield (README, START), learns
    yield (README,), f"each seen {plain['exposures']:.0f} times"
    yield (README,), f"{bits} bits, where those of the plain model store "
    more = f"{plain['bits'] / known['plain']['parameters']:.2f}"
    yield (README,), f"the plain model store {of_plain}, and {more} with 30,000"
    yield (
        (CAPACITY,),
        (
            f"{bits} bits and one of the plain model {of_plain} "
            f"(with 30,000 facts {more}"
        ),
    )
    yield (CAPACITY,), f"sees {plain['exposures']:.0f} times, it knows"
    yield (CAPACITY,), f"{plain['bits']:,.0f} bits"
    others = [known[key]["exposures"] for key in ("wide-parameters", "plain")]
    yield (CAPACITY,), "between {:.1f} and {:.0f} times".format(*others)
    # As the reports do: interpolated between two measurements.
    times = {
        key: [seconds_to(0.95, seed["curve"]) for seed in known[key]["seeds"]]
        for key in ("pkm", "resm")
    }
    yield (
        (CAPACITY,),
        "95 % after {:.0f} to {:.0f} seconds, against {:.0f} to {:.0f}".format(
            *(
                each(times[key])
                for key in ("pkm", "resm")
                for each in (min, max)
            )
        ),
    )
    pkm, resm, init = (
        f"{100 * sweep[key, 256, 120_000]['recall']:.1f}"
        for key in ("pkm", "resm", "init-resm")
    )
    yield (
        (CAPACITY,),
        f"{pkm} % against {resm}, and ResM+Init fewer, {init} %",
    )


def seconds_to(share, curve):
    (seconds, recall) = (0.0, 0.0)
    for point in curve:
        if point["recall"] >= share:
            part = (share - recall) / (point["recall"] - recall)
            return seconds + part * (point["seconds"] - seconds)
        seconds, recall = point["seconds"], point["recall"]
    raise AssertionError(f"{share} was not reached")


def synonyms():
    """Facts that are asked for in other words."""
    known = stored("recall-synonyms/report.json")["candidates"]
    recalls = {
        key: statistics.median(each["recall"] for each in way["seeds"])
        for key, way in known.items()
    }
    assert recalls["plain"] == 1
    resm, ngrams = (percent(recalls[key]) for key in ("resm", "ngrams"))
    yield (CAPACITY,), f"ResM learned {resm} and n-grams {ngrams}"
    both = f"plain model knows all, ResM {resm} and n-grams {ngrams}"
    yield (README, START), both
    yield (CAPACITY,), f"it knows {resm}, and less than 6 % without"
    yield (CAPACITY,), f"know {ngrams}, less than the same model"
    zero = [seed["ablated"]["zero"] for seed in known["resm"]["seeds"]]
    assert max(zero) < 0.06
    for seed in known["plain"]["seeds"]:
        (then,) = (
            point["recall"] for point in seed["curve"] if point["step"] == 1147
        )
        assert then >= 0.999 and known["resm"]["steps"] == 1140
    times = [known[key]["milliseconds"][0] for key in ("resm", "plain")]
    assert round(times[0] / times[1], 1) == 1.5
    many = stored("recall-synonyms-many/report.json")["candidates"]
    plain, resm, ngrams = (
        percent(
            statistics.median(each["recall"] for each in many[key]["seeds"])
        )
        for key in ("plain", "resm", "ngrams")
    )
    yield (
        (README, START),
        f"Of 48,000, it knows {plain}, ResM {resm} and n-grams {ngrams}",
    )
    yield (
        (CAPACITY,),
        f"of 48,000, it learned {plain}, ResM {resm} and n-grams {ngrams}",
    )
    yield (CAPACITY,), f"{resm} of these facts are known, and {plain} by"
    yield (CAPACITY,), f"**N-grams** know {ngrams}: the rows"
    held = many["plain"]["bits"] / many["plain"]["parameters"]
    yield (CAPACITY,), f"parameters hold {held:.1f} bits each"
    zero = [seed["ablated"]["zero"] for seed in many["resm"]["seeds"]]
    assert max(zero) < 0.01
    seen = [many[key]["exposures"] for key in ("plain", "resm")]
    assert 1.8 < seen[0] / seen[1] < 2
    assert [many[key]["rates"][0] for key in many] == [2e-3] * 3
    for key in ("plain", "resm"):
        shares = [100 * seed["recall"] for seed in many[key]["seeds"]]
        span = f"{min(shares):.1f} to {max(shares):.1f} %"
        yield (CAPACITY,), f"knows {span}" if key == "resm" else f"model {span}"


def bits():
    """What a parameter holds, of more facts than fit."""
    known = stored("recall-bits/report.json")["candidates"]
    plain, resm = known["plain"], known["resm"]
    assert [round(way["exposures"]) for way in (plain, resm)] == [100, 100]
    held, of_plain = (
        f"{way['bits'] / way['parameters']:.2f}" for way in (resm, plain)
    )
    yield (README,), f"[{held} and {of_plain} bits]"
    yield (CAPACITY,), f"{held} bits against {of_plain}"
    added = resm["bits"] - plain["bits"]
    added /= resm["parameters"] - plain["parameters"]
    yield (CAPACITY,), f"ResM has more hold {added:.2f} bits each"
    every = 80_000 * 10
    of_all = [f"{every / way['parameters']:.1f}" for way in (plain, resm)]
    yield (
        (CAPACITY,),
        f"{of_all[0]} for each parameter of the plain model, and {of_all[1]}",
    )
    for seed in resm["seeds"]:
        assert abs(seed["int8"]["recall"] - seed["recall"]) < 0.0005
    longer = stored("recall-bits-1000/report.json")["candidates"]
    held, of_plain = (
        f"{longer[key]['bits'] / longer[key]['parameters']:.2f}"
        for key in ("resm", "plain")
    )
    yield (README,), f"1,000 times know {held} and {of_plain}"
    yield (CAPACITY,), f"{held} bits, and one of the plain model {of_plain}"
    seeds = longer["resm"]["seeds"]
    middle = percent(statistics.median(seed["recall"] for seed in seeds))
    yield (CAPACITY,), f"ResM knows {middle} of the facts here"
    for seed in seeds:
        assert seed["recall"] - seed["int8"]["recall"] < 0.0015
    yield (CAPACITY,), "In int8 it loses at most 0.1 % of the facts"
    for way in (plain, resm):
        rates = [tried["rates"] for tried in way["grid"]]
        assert way["rates"][0] == max(rate for rate, _ in rates)


def other_ways():
    """What experts, n-grams and depth know of random facts."""
    report = stored("recall-controls/report.json")
    found = report["candidates"]
    recalls = {
        key: statistics.median(seed["recall"] for seed in each["seeds"])
        for key, each in found.items()
    }
    for key in ("ngrams", "ngrams-question"):
        assert all(seed["recall"] == 1 for seed in found[key]["seeds"])
    all_seeds = [seed["recall"] for seed in found["resm"]["seeds"]]
    least, most = (f"{100 * each(all_seeds):.1f}" for each in (min, max))
    learns = f"ResM learns {least} to {most} % of 48,000 facts"
    yield (README, START), learns
    yield (WHICH,), f"product keys learn {least} to {most} %"
    soon = {
        row[0]: float(row[1].split()[0])
        for row in report["tables"]["How soon each model knows 95%"]["rows"]
        if row[1][0].isdigit()
    }
    faster = soon[found["ngrams"]["title"]] / soon["ResM"]
    assert round(1 / faster) == 3
    two, one, deep = (
        percent(recalls[key]) for key in ("experts-2", "experts-1", "deeper")
    )
    yield (README, START, CAPACITY), "a third of the time that ResM needs"
    yield (CAPACITY,), f"as many parameters as ResM learns {two} of 48,000"
    yield (README, START), f"as many parameters learns {two} of them"
    yield (CAPACITY,), f"knows {two}, with steps"
    yield (CAPACITY,), f"with one expert, it knows {one}"
    yield (CAPACITY,), f"and knows {deep}"
    same = [
        tried["recall"]
        for key in ("experts-1", "experts-2")
        for tried in found[key]["grid"]
        if tried["rates"][0] == tried["rates"][1]
    ]
    low, high = (percent(each(same)) for each in (min, max))
    yield (CAPACITY,), f"mixtures know {low.split()[0]} to {high}"


def controls():
    """What ways of teaching keep of random facts."""
    ways = stored("forgetting/report.json")["candidates"]

    def shares(key):
        return [percent(ways[key][each], 0) for each in ("kept", "learned")]

    loras = ("lora", "lora-8", "lora-32", "lora-128")
    for key in ("all", *loras):
        assert max(each["kept"] for each in ways[key]["tried"]) < 0.01
    yield (TEACHING,), "no rate of the grid kept 1 % of these"
    forgetful = [ways[key] for key in ("all", "ffn", "head", *loras)]
    assert max(way["kept"] for way in forgetful) < 0.01
    new = [way["learned"] for way in forgetful]
    low, high = (percent(each(new), 0) for each in (min, max))
    known = f"{low.split()[0]} to {high} of the new facts"
    pages = (README, START)
    yield pages, f"they know {known} and less than 1 % of the old ones"
    yield (TEACHING,), f"{known}, or {shares('all-fast-values')[1]}"
    left = percent(ways["all-fast-values"]["kept"])
    yield (TEACHING,), f"at most {left} of the old facts"
    old, new = shares("replay")
    fast = [share.split()[0] for share in shares("replay-fast-values")]
    both = f"{fast[0]} and {fast[1]} %"
    yield (TEACHING,), f"keeps {old} of them and {new} of the new ones"
    yield (TEACHING,), f"15 times as high, {both}."
    yield (
        pages,
        (
            f"keeps {old} of the old facts and {new} of the new ones, or "
            f"{both} with a higher rate for the values"
        ),
    )
    yield (
        (TEACHING,),
        (
            f"With replay of all old facts, {old.split()[0]} to {fast[0]} % "
            f"of these stay, and {new.split()[0]} to {fast[1]} % of the new"
        ),
    )
    tenth, hundredth = (shares(f"replay-{each}")[0] for each in (10, 1))
    yield (TEACHING,), f"keeps {tenth.split()[0]} and {hundredth} of all"
    yield (TEACHING,), f"penalty keeps {shares('l2-300')[0]} of the old"
    yield (TEACHING,), f"{shares('l2-30')[0]} of the old facts are left"
    yield (TEACHING,), f"They keep {shares('slots-adam')[1]} of the new"
    drawn, frequent = (shares(f"slots-{k}") for k in ("random", "frequent"))
    assert drawn == frequent
    yield pages, f"{drawn[1]} of the new facts and {drawn[0]} of the old ones"
    after = [way["right_after"] for way in ways.values()]
    assert min(after) > 0.98
    yield pages, "knows nearly all of a group right after it was taught"


def text():
    """What facts cost a model of text."""
    slots = stored("forgetting-text/taught-slots/results.json")
    change = percent(slots["old"]["change"])
    known = percent(slots["new"]["known_after"], 0)
    yield (README, START), f"{known} of 500 facts are learned"
    yield (README, START), f"a perplexity that is {change} higher"
    yield (TEACHING,), f"rose by {change} for 500 facts"
    ways = stored("forgetting-text/compare/report.json")["candidates"]
    replay = ways["replay"]["tried"][ways["replay"]["best"]]["seeds"][0]
    yield (TEACHING,), f"{percent(replay['old']['change'])} for the 4 kB"


def perplexities():
    """What memory brings to a model that trains for as many steps."""
    models = stored("paper/comparison/report.json")["models"]
    plain, memory = (
        statistics.median(seed["perplexity"] for seed in models[key]["seeds"])
        for key in "bf"
    )
    yield (README,), f"{plain:.2f} without memory, {memory:.2f} with it"
    yield (CAPACITY, PAPER), f"{memory:.2f} and {plain:.2f}"


def speed():
    """What a memory costs."""
    rows = stored("layer-short/layer.json")["rows"]
    faster = {
        (row["tokens"], row["task"], row["against"]): row["times faster"]
        for row in rows
    }
    bag = "EmbeddingBag (torch)"
    sparse = faster[128, "train step", f"{bag}, SparseAdam"].split()[0]
    fused = faster[2048, "train step", f"{bag}, fused Adam"]
    low, high = fused.split("(")[1][:-1].split("-")
    forward = float(faster[128, "forward", f"{bag}, Adam"].split()[0])
    yield (SPEED,), f"{fused.split()[0]}, from {low} to {high}"
    yield (SPEED,), f"is {sparse} times faster with 128"
    yield (SPEED,), f"takes {1 / forward:.1f} times as long"
    trained = {
        row["model"]: row for row in stored("training/training.json")["rows"]
    }
    resm = trained["BASE+ResM, PKMAdam"]
    slower = resm["times slower"].split()[0]
    peaks = [
        float(row["peak MiB"].replace(",", ""))
        for row in (resm, trained["BASE, Adam"])
    ]
    yield (SPEED,), f"step {slower} times as long"
    more = f"{peaks[0] / peaks[1]:.1f}"
    yield (SPEED,), f"its peak memory is {more} times that of BASE with stock"
    yield (START,), f"a train step {slower} times as long on CPUs"


def moments():
    """What smaller moments and counted steps change."""
    known = stored("recall-kinds/report.json")["candidates"]
    full, row, steps = (
        percent(known[key]["recall"])
        for key in ("resm", "row-moments", "row-steps")
    )
    yield (OPTIMIZER,), f"{row} of the facts, and {full} with Adam's v"
    yield (OPTIMIZER,), f"worse, {steps}"


def edits():
    """What a finished model knows, and what has changed in it."""

    def seeds(study, odds):
        (tried,) = (
            each
            for each in stored(f"{study}/report.json")["ways"]["facts"]["tried"]
            if each["rate"] == odds
        )
        return tried["seeds"]

    def span(shares, start=""):
        low, high = (f"{100 * each:.0f}" for each in (min(shares), max(shares)))
        return f"{start}{low} to {high} %"

    def changed(seeds, kind):
        return [1 - seed["same"][kind]["same"] for seed in seeds]

    def middle(shares):
        return percent(statistics.median(shares), 0)

    one, careful = seeds("edits-prompts", 3.0), seeds("edits-seeds", 1.0)
    knows = [seed["paraphrase"] for seed in one]
    others = [changed(one, kind) for kind in ("other", "never named")]
    steps = changed(one, "two steps")
    as_before = [1 - share for share in others[0]]
    low = [seed["paraphrase"] for seed in careful]
    yield (README, START), span(knows, "three, which have ")
    times = [seed["seconds"] for seed in one]
    took = f"{min(times):.0f} to {max(times):.0f} seconds, two jobs"
    yield (README, START), took
    yield (README, START), span(as_before, "paraphrases, and ")
    yield (README, START), span(low, "changes fewer other answers, and has ")
    for kind, words in (
        ("never named", "no relation is about are unchanged in "),
        ("two steps", "those to questions in two steps in "),
    ):
        stay = [seed["same"][kind]["same"] for seed in one]
        yield (README, START), span(stay, words)
    yield (EDITS,), f"answers {middle(knows)} of the phrasings"
    yield (
        (EDITS,),
        (
            f"it changes {middle(others[0])} of the answers in other "
            f"relations, {middle(others[1])} of those that no relation is "
            f"about, and {middle(steps)} of those in two steps"
        ),
    )
    prompts = [
        stored("edits-prompts/report.json")["ways"][key]["tried"][0]["seeds"]
        for key in ("prompt-one", "prompt-all")
    ]
    once, often = ([seed["paraphrase"] for seed in each] for each in prompts)
    (ahead,) = (each for each, memory in zip(often, knows) if each > memory)
    yield (README, START), f"the prompt answered more ({percent(ahead, 0)})"
    yield (WHICH,), f"four phrasings, and {middle(once)} if it was in one"
    yield (
        (EDITS,),
        (
            f"answer {middle(once)} if a fact is said once ({span(once)}), and "
            f"{middle(often)} ({span(often)}) if it"
        ),
    )
    kept, less = (
        percent(1 - statistics.median(changed(each, "other")), 0)
        for each in prompts
    )
    yield (EDITS,), f"{kept[:-2]} and {less} are as before"
    ways = stored("edits/report.json")["ways"]
    dense = [ways[key] for key in ("lora-8", "lora-64", "all", "replay")]
    last = [
        max(way["tried"], key=lambda found: found["rate"])["seeds"][0]
        for way in dense
    ]
    known = span([seed["paraphrase"] for seed in last])
    yield (README, START), f"with the highest rate they answer {known}"
    yield (EDITS,), f"With the highest one they answer {known}"
    near, far, other, general = (
        percent(
            max(
                found["seeds"][0]["same"][kind]["same"]
                for way in dense
                for found in way["tried"]
            ),
            0,
        )
        for kind in ("near", "far", "other", "known")
    )
    kept = f"at most {near} of near names, {far} of far names, {other} of the"
    yield (EDITS,), kept
    yield (EDITS,), f"{general} of the general questions are answered as"
    falls = [
        -found["seeds"][0]["text"]["change"]
        for found in ways["replay"]["tried"]
    ]
    yield (EDITS,), f"falls by {span(falls)}"
    row, keys, slots = (
        ways[key]["tried"][0]["seeds"][0]
        for key in ("ngram", "product-keys", "product-keys-slots")
    )
    yield (
        (EDITS,),
        (
            f"answers {percent(row['paraphrase'], 0)}, and changes "
            f"{percent(*changed([row], 'other'), 0)} of the other relations; "
            "behind 900 characters of other text it gives "
            f"{percent(row['document'], 0)} of its own"
        ),
    )
    kept = [slots["same"][kind]["same"] for kind in ("near", "far")]
    yield (
        (EDITS,),
        (f"answer {percent(slots['paraphrase'], 0)} and keep {span(kept)}"),
    )
    yield (EDITS,), f"answer {percent(keys['paraphrase'], 0)} if all values"

    again = [
        stored(f"edits-prompts/trials/{way}-rate-0.1-seed-0.json")
        for way in ("ngram", "product-keys", "product-keys-slots")
    ]
    for number in (
        lambda trial: trial["paraphrase"],
        lambda trial: trial["same"]["other"]["same"],
    ):
        *first, last = (f"{100 * number(trial):.0f}" for trial in again)
        yield (EDITS,), f"{', '.join(first)} and {last} %"

    for seed, relations in zip(one, ("city", "food", "colour")):
        yield (EDITS,), f"{percent(seed['paraphrase'], 0)} ({relations},"

    for study, known, differs in (
        (
            "edits-one",
            "answers {} of the others",
            "changes {} of the other relations",
        ),
        (
            "edits-three",
            "{} are answered",
            "{} of the other relations change",
        ),
    ):
        three = seeds(study, 3.0)
        knows = [seed["paraphrase"] for seed in three]
        median = ", the median of three seeds"
        known = known.format(middle(knows))
        yield (EDITS,), f"{known}{median} ({span(knows)})"
        shares = changed(three, "other")
        differs = differs.format(middle(shares))
        yield (EDITS,), f"{differs} ({span(shares)})"
    for kind, words in (
        ("never named", "that no relation is about, {} change"),
        ("two steps", "two-step questions {}"),
    ):
        shares = changed(three, kind)
        yield (EDITS,), f"{words.format(middle(shares))} ({span(shares)})"


CLAIMS = [
    pytest.param(page, text, id=f"{make.__name__}-{number}-{page}")
    for make in (
        facts,
        synonyms,
        bits,
        other_ways,
        controls,
        text,
        perplexities,
        speed,
        moments,
        edits,
    )
    for number, (pages, text) in enumerate(make())
    for page in pages
]


@pytest.mark.parametrize(("page", "text"), CLAIMS)
def test_a_sentence_says_what_is_stored(page, text):
    words = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    # A number begins where the text does.
    assert re.search(rf"(?<![\d.,]){re.escape(text)}", words)


def test_the_start_names_how_long_its_stages_took():
    printed = (MEASURED / "start" / "output-1.txt").read_text(encoding="utf-8")
    took = [
        line.split(" of the ")[1].split()[0]
        for line in printed.splitlines()
        if line.startswith("Writing checkpoints")
    ]
    for page in (README, START):
        words = " ".join((ROOT / page).read_text(encoding="utf-8").split())
        assert f"the stages took {' and '.join(took)} seconds" in words


def test_the_readme_names_what_the_comparison_has():
    """Each project of the README's table stands in the details."""
    text = (ROOT / README).read_text(encoding="utf-8")
    section = text.split("\n## What others have\n")[1].split("\n## ")[0]
    details = (ROOT / "docs/what-others-have.md").read_text(encoding="utf-8")
    for name in (
        *("XLM", "product-key-memory", "facebookresearch/memory", "UltraMem"),
        *("sparse-memory-lm", "engram-peft", "MaxText", "Megatron-LM"),
        *("ENGRAFT", "ngram-knowledge-injector", "vLLM"),
    ):
        assert name in section, name
        assert name in details, name
