"""What all tests have, on each backend of Keras."""

import pathlib

import keras
import pytest

if keras.backend.backend() == "jax":
    import tests.on_jax  # noqa: F401
elif keras.backend.backend() == "tensorflow":
    from tests.on_tensorflow import free_memory  # noqa: F401
    from tests.on_tensorflow import memory  # noqa: F401
    from tests.on_tensorflow import mirrored  # noqa: F401
    from tests.on_tensorflow import own_collectives  # noqa: F401
    from tests.on_tensorflow import rare_garbage_collections  # noqa: F401
    from tests.on_tensorflow import tiny_run  # noqa: F401
    from tests.on_tensorflow import untuned_datasets  # noqa: F401

# The longest files first, so that with `-n 2` neither process is left with one
# of them at the end. Those in the first lines are long because of slow tests.
_LONGEST = (
    "training/resume_test.py",
    "training/pretrain_causal_test.py",
    "training/studies/papers/to_the_end_test.py",
    "docs/shell_test.py",
    "any_backbone/matrix_test.py",
    "benchmarks_test.py",
    "notebooks_test.py",
    "training/multi_worker_test.py",
    "export/fresh_process_test.py",
    "training/pretrain_test.py",
    "training/finetuning/finetune_test.py",
    "training/studies/recall/to_the_end_test.py",
    "training/studies/forgetting_test.py",
    "optimizers/train_step_test.py",
    "models/families_test.py",
    "models/tasks_test.py",
    "callbacks/training_checkpoint_test.py",
    "trainers/gradient_accumulation_test.py",
    "models/question_answerer_preprocessor_test.py",
    "training/analyze_memory_test.py",
    "export/saved_model_test.py",
    "docstrings_test.py",
)
_FOLDER = pathlib.Path(__file__).parent
# What is tested on JAX and torch, too. All else is TensorFlow's, or is the same
# on all of them.
_ON_ALL_BACKENDS = (
    "any_backbone/any_backbone_test.py",
    "any_backbone/mistakes_test.py",
    "any_backbone/parallel_blocks_test.py",
    "backends",
    "layers/value_table_test.py",
    "layers/weight_options_test.py",
    "ops/arguments_test.py",
    "probing/adapt_memories_test.py",
    "probing/memories_everywhere_test.py",
    "teaching/slot_importance_test.py",
    "trainers/freezing_test.py",
)


def pytest_ignore_collect(collection_path):
    if keras.backend.backend() == "tensorflow" or collection_path == _FOLDER:
        return None
    name = collection_path.relative_to(_FOLDER).as_posix()
    return not any(
        name.startswith(each) or each.startswith(f"{name}/")
        for each in _ON_ALL_BACKENDS
    )


def pytest_report_header():
    return f"backend of Keras: {keras.backend.backend()}"


def pytest_collection_modifyitems(items):
    def place(item):
        name = item.path.relative_to(_FOLDER).as_posix()
        return _LONGEST.index(name) if name in _LONGEST else len(_LONGEST)

    items.sort(key=place)


if keras.backend.backend() != "tensorflow":

    @pytest.fixture
    def mirrored():
        pytest.skip("only TensorFlow has strategies")


@pytest.fixture(autouse=True)
def seed():
    keras.utils.set_random_seed(0)
