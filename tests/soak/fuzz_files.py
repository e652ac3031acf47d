"""Damages files of runs, patches and exports, and calls commands on them.

    python tests/soak/fuzz_files.py --cases 500

Each case copies a run (finished or not), a patch or an exported model, damages
one of its files at random, and calls a command that reads it. It must end with
an error that names what is wrong, or with a warning, or with the result of the
undamaged files. A traceback, or another result without a word, makes the exit
code 1.
"""

import collections
import contextlib
import gc
import io
import logging
import pathlib
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterable

if __name__ == "__main__":
    # A clone runs its own code, from any folder, installed or not.
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2])

import keras
import tensorflow as tf
import tyro
from tqdm import tqdm

from tests.soak.fuzz_targets import TARGETS
from tests.soak.fuzz_targets import Target
from tests.soak.fuzz_targets import prepare

OTHER_TYPES = ("[]", "null", "3", '"text"', "{}", '{"a": [1]}', "[[[]]]")


def damage(folder: pathlib.Path, rng: random.Random) -> tuple[str, str]:
    """Damages a file of a directory, and returns how, and which."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path = rng.choice(files)
    name = path.relative_to(folder).as_posix()
    kind = rng.choice(
        ["truncate", "flip", "delete", "swap", "empty", "other type"]
    )
    content = bytearray(path.read_bytes())
    if kind == "truncate":
        path.write_bytes(content[: rng.randrange(max(1, len(content)))])
    elif kind == "flip" and content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
    elif kind == "delete":
        path.unlink()
    elif kind == "swap":
        other = rng.choice(files)
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
        name += f" and {other.relative_to(folder).as_posix()}"
    elif kind == "empty":
        path.write_bytes(b"")
    else:
        path.write_text(rng.choice(OTHER_TYPES))
    return kind, name


def call(target: Target, root: pathlib.Path, case: pathlib.Path):
    """Calls a command; returns how it ended, its result and what it printed."""
    out, errors = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(errors)
    logging.getLogger().addHandler(handler)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(errors),
        ):
            args = [str(arg) for arg in target.args(root, case)]
            code = target.command.main(args)
            result = None
            if code == 0:
                result = target.result(case) or out.getvalue()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "traceback", None, traceback.format_exc()
    finally:
        logging.getLogger().removeHandler(handler)
        keras.utils.clear_session()
        gc.collect()
    if code:
        named = "error: " in errors.getvalue()
        return "error" if named else "no word", None, errors.getvalue()
    return "ended", result, errors.getvalue()


def fuzz(
    root: pathlib.Path, cases: Iterable[int], seed: int, commands: list[str]
) -> tuple[collections.Counter, list[str]]:
    """Runs all cases, and returns their counts and the bad ones."""
    expected = {}
    for name in commands:
        with tempfile.TemporaryDirectory(dir=root) as folder:
            case = pathlib.Path(folder)
            source = TARGETS[name].folder
            shutil.copytree(root / source, case / source)
            ended, expected[name], printed = call(TARGETS[name], root, case)
            if ended != "ended":
                raise RuntimeError(f"{name}, undamaged: {printed}")
    counts, bad = collections.Counter(), []
    for number in tqdm(cases, "Cases", disable=None):
        name = commands[number % len(commands)]
        target = TARGETS[name]
        rng = random.Random(f"{seed} {number}")
        with tempfile.TemporaryDirectory(dir=root) as folder:
            case = pathlib.Path(folder)
            shutil.copytree(root / target.folder, case / target.folder)
            kind, file = damage(case / target.folder, rng)
            ended, result, printed = call(target, root, case)
        if ended == "ended":
            if result == expected[name]:
                ended = "same result"
            elif "damaged" in printed.lower() or "warning" in printed.lower():
                ended = "warned"
            else:
                ended = "other result"
        counts[name, kind, ended] += 1
        if ended in ("traceback", "no word", "other result"):
            bad.append(f"case {number}: {name}, {kind} {file}: {ended}")
            tqdm.write(f"{bad[-1]}\n{printed[-1500:]}")
    return counts, bad


def main(
    cases: int = 500,
    seed: int = 0,
    commands: tuple[str, ...] = tuple(TARGETS),
    eagerly: bool = False,
    only: tuple[int, ...] = (),
) -> int:
    """Damages files at random and checks what commands say of it.

    Args:
        cases: Number of cases, shared evenly by the commands.
        seed: Of the damages.
        commands: Names of commands.
        eagerly: Run TensorFlow's functions eagerly: models are so small that
            tracing graphs takes most of the time.
        only: Numbers of cases, as the list of bad ones has them. Defaults to
            all.
    """
    tf.config.run_functions_eagerly(eagerly)
    print(f"{cases} cases, seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        prepare(root)
        counts, bad = fuzz(root, only or range(cases), seed, list(commands))
    for title, place in (("command", 0), ("damage", 1)):
        table = collections.defaultdict(collections.Counter)
        for key, count in counts.items():
            table[key[place]][key[2]] += count
        print(f"\nBy {title}:")
        for name, row in table.items():
            ends = ", ".join(f"{end} {n}" for end, n in sorted(row.items()))
            print(f"- {name}: {sum(row.values())}: {ends}")
    print(f"\n{len(bad)} of {sum(counts.values())} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(tyro.cli(main))
