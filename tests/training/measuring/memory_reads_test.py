"""Heads that read nothing, such as those of n-grams that nobody claimed."""

import types

import numpy as np

from keras_pkm.probing.memory_access import MemoryAccess
from training.measuring.memory_reads import collect_reads
from training.measuring.slot_tokens import find_readers


def test_a_slot_of_weight_zero_has_no_readers():
    slots = np.array([[[[3]], [[5]], [[3]]]], "int32")
    weights = np.array([[[[1.0]], [[0.0]], [[0.0]]]], "float32")
    ids, is_token = np.array([[7, 8, 9]]), np.ones((1, 3), bool)
    access = MemoryAccess(ids, is_token, {1: (slots, weights)}, {1: 6})
    reads = collect_reads([access], kept_tokens=10)
    memory = reads.memories[1]
    assert memory.counts["reads"].tolist() == [0, 0, 0, 1, 0, 0]
    assert memory.top1[0, :, 0].tolist() == [3, -1, -1]
    tokenizer = types.SimpleNamespace(
        id_to_token=str, detokenize=lambda ids: " ".join(map(str, ids))
    )
    (reader,) = find_readers(ids, is_token, memory.top1, tokenizer)
    assert (reader.slot, reader.reads) == (3, 1)
    assert [each.token for each in reader.tokens] == ["7"]
