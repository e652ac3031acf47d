import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.corpora.row_layouts import pack_sentences

CLS, SEP = 1, 2

# Every token is another number, so that an order can be recognised.
documents_of_lengths = st.lists(st.lists(st.integers(0, 12), max_size=6))
lengths = st.integers(3, 16)


def _documents(documents_of_lengths):
    token = 10
    documents = []
    for sentence_lengths in documents_of_lengths:
        documents.append([])
        for length in sentence_lengths:
            documents[-1].append(list(range(token, token + length)))
            token += length
    return documents


def _pack(documents, sequence_length):
    return list(pack_sentences(documents, sequence_length, CLS, SEP))


@given(documents_of_lengths, lengths)
def test_no_token_is_lost_or_moved(documents, sequence_length):
    documents = _documents(documents)
    packed = _pack(documents, sequence_length)
    expected = [t for doc in documents for sent in doc for t in sent]
    assert [t for row in packed for t in row if t >= 10] == expected


@given(documents_of_lengths, lengths)
def test_form_of_a_sequence(documents, sequence_length):
    for row in _pack(_documents(documents), sequence_length):
        assert 3 <= len(row) <= sequence_length
        assert row[0] == CLS and row.count(CLS) == 1
        assert row[-1] == SEP
        # No [SEP] stands at the start, or beside another.
        assert all(a != SEP or b != SEP for a, b in zip(row, row[1:]))
        assert row[1] != SEP


@given(documents_of_lengths, lengths)
def test_separators_stand_between_documents(documents, sequence_length):
    documents = _documents(documents)
    document_of = {
        token: number
        for number, document in enumerate(documents)
        for sentence in document
        for token in sentence
    }
    for row in _pack(documents, sequence_length):
        inner = row[1:-1]
        for before, after in zip(inner, inner[1:]):
            if before != SEP and after != SEP:
                assert document_of[before] == document_of[after]
        for before, here, after in zip(inner, inner[1:], inner[2:]):
            if here == SEP:
                assert document_of[before] != document_of[after]


@given(documents_of_lengths, lengths)
def test_sentences_are_whole_and_rows_are_full(documents, sequence_length):
    documents = _documents(documents)
    packed = _pack(documents, sequence_length)
    room = sequence_length - 2
    row_of = {t: i for i, row in enumerate(packed) for t in row if t >= 10}
    sentences = [sent for doc in documents for sent in doc if sent]
    for sentence in sentences:
        if len(sentence) <= room:
            assert len({row_of[token] for token in sentence}) == 1
    # A row ends where the next sentence (or a whole row of it) does not fit.
    firsts = {sent[0]: sent for sent in sentences}
    for row, following in zip(packed, packed[1:]):
        sentence = firsts.get(following[1], following[1:])
        assert len(row) - 2 + min(len(sentence), room) + 1 > room


def test_example():
    documents = [[[10, 11], [12]], [], [[13], []], [[14, 15, 16, 17, 18]]]
    assert _pack(documents, 6) == [
        [CLS, 10, 11, 12, SEP],
        [CLS, 13, SEP],
        [CLS, 14, 15, 16, 17, SEP],
        [CLS, 18, SEP],
    ]
    assert _pack(documents, 7)[0] == [CLS, 10, 11, 12, SEP, 13, SEP]


def test_nothing():
    assert _pack([], 8) == _pack([[]], 8) == _pack([[[]], [[], []]], 8) == []


def test_no_room():
    with pytest.raises(ValueError, match="at least 3"):
        _pack([[[10]]], 2)
