"""From any text to masked batches: what must hold, whatever the text is."""

import math
import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import example
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from training.batches.masking import Masking
from training.batches.objectives import MaskedTokens
from training.corpora.packed_text import tokenize_and_pack
from training.corpora.text_files import read_documents
from training.runs.user_error import UserError

LENGTH = 12

line = st.text(st.characters(codec="utf-8"), max_size=60)
texts = st.lists(
    st.one_of(
        line,
        st.just(""),
        st.sampled_from(
            [
                "a",
                "word " * 500,
                "x" * 3000,
                "one. two! three? [SEP] [MASK] [PAD]",
                "e\u0301 \u00e9 \u1e9e \ufb01 \U0001f600\u200d\U0001f525",
                "\u4e2d\u6587 \u0627\u0644 \u05e9\u05dc",
                "\x00\x01\x7f \u2028 \u2029 \x85 \x0b \x0c",
                "\ufeff \u00a0 \u200b \u3000",
            ]
        ),
    ),
    max_size=8,
)


def plain_spaces(text):
    """The text as keras-hub splits it where we do: it knows ASCII's alone.

    NUL would be the end of its text.
    """
    return "".join(
        " " if some == "\0" or unicodedata.category(some)[0] == "Z" else some
        for some in text
    )


def pack(text, tokenizer, path):
    """The documents of a text and the rows that they are packed into."""
    path.write_text(text, encoding="utf-8", newline="")
    documents = list(read_documents([str(path)]))
    rows = tokenize_and_pack(
        documents,
        tokenizer,
        LENGTH,
        path.with_suffix(".int32"),
        progress_label=None,
    )
    return documents, np.array(rows)


@pytest.mark.slow
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(lines=["\n\n"])
@example(lines=["a", "", "b"])
@example(lines=["x" * 100_000])
@given(lines=texts)
def test_any_text(lines, tokenizer, tmp_path):
    masking = Masking.from_tokenizer(tokenizer, LENGTH)
    special = {
        tokenizer.pad_token_id,
        tokenizer.cls_token_id,
        tokenizer.sep_token_id,
    }
    path = tmp_path / "text.txt"
    try:
        documents, rows = pack("\n".join(lines), tokenizer, path)
    except UserError as error:
        assert "must contain a token" in str(error)
        return

    # All tokens, in order, and no other: each line tokenized as a whole.
    expected = [
        token
        for document in documents
        for part in document.splitlines()
        for token in np.array(tokenizer(plain_spaces(part))).tolist()
    ]
    assert [t for t in rows.ravel().tolist() if t not in special] == expected

    for row in rows.tolist():
        used = [t for t in row if t != tokenizer.pad_token_id]
        assert row == used + [tokenizer.pad_token_id] * (LENGTH - len(used))
        assert 3 <= len(used) <= LENGTH
        assert used[0] == tokenizer.cls_token_id
        assert used[-1] == tokenizer.sep_token_id

    names = ("token_ids", "segment_ids", "padding_mask")
    objective = MaskedTokens(tokenizer, LENGTH, masking, names)
    batches = objective.training_batches(
        rows, batch_size=4, seed=0, num_steps=2
    )
    for features, labels, weights in batches.as_numpy_iterator():
        assert not features["segment_ids"].any()
        for i in range(4):
            count = int(weights[i].sum())
            positions = features["mask_positions"][i, :count]
            original = features["token_ids"][i].copy()
            original[positions] = labels[i, :count]
            assert original.tolist() in rows.tolist()
            assert not set(labels[i, :count].tolist()) & special
            selectable = sum(t not in special for t in original.tolist())
            assert count == min(
                math.ceil(np.float32(0.15) * np.float32(selectable)),
                masking.mask_selection_length,
            )
            np.testing.assert_array_equal(
                features["padding_mask"][i],
                original != tokenizer.pad_token_id,
            )
