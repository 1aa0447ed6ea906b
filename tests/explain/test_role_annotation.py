"""Annotation: CoNLL-U as it is, coreference tables, plain text, recognisers, words and tokens."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from clearhead.errors import InputError, MissingExtraError
from clearhead.explain.roles import built_in
from clearhead.explain.roles.built_in_text import made_sentences
from clearhead.explain.roles.conllu import conllu_sentences, read_conllu
from clearhead.explain.roles.coreference_file import coreference_sentences
from clearhead.explain.roles.corpus import corpus_of
from clearhead.explain.roles.plain_text import sentences_in
from clearhead.explain.roles.recognisers import plain_sentence, recognised
from clearhead.explain.roles.sentence import AnnotatedWord, Sentence
from clearhead.explain.roles.spacy_text import sentence_of, spacy_pipeline
from clearhead.explain.roles.tokenised import TokenisedSentence, tokenised
from clearhead.text.token import Token


def row(*cells: str) -> str:
    filled = [*cells, *["_"] * (10 - len(cells))]
    return "\t".join(filled)


DONT = [
    "# text = They don't sleep.",
    row("1", "They", "they", "PRON", "_", "_", "4", "nsubj"),
    row("2-3", "don't"),
    row("2", "do", "do", "AUX", "_", "_", "4", "aux"),
    row("3", "n't", "not", "PART", "_", "_", "4", "advmod"),
    row("4", "sleep", "sleep", "VERB", "_", "_", "0", "root", "_", "SpaceAfter=No"),
    row("4.1", "soundly"),
    row("5", ".", ".", "PUNCT", "_", "_", "4", "punct"),
    "",
]


def test_multiword_tokens_share_their_surface_and_empty_nodes_are_left_out() -> None:
    (sentence,) = conllu_sentences(DONT)
    assert sentence.text == "They don't sleep."
    assert [word.text for word in sentence.words] == ["They", "do", "n't", "sleep", "."]
    assert [(word.start, word.end) for word in sentence.words] == [
        (0, 4), (5, 10), (5, 10), (11, 16), (16, 17),
    ]  # fmt: skip
    assert [word.head for word in sentence.words] == [3, 3, 3, None, 3]


def test_text_is_put_together_where_it_is_missing_or_another() -> None:
    (spelled,) = conllu_sentences(DONT[1:])
    (other,) = conllu_sentences(["# text = Something else.", *DONT[1:]])
    assert spelled.text == other.text == "They don't sleep."


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["1\tThey\tthey"], "line 1: 10 columns between tabs are wanted; 3 came"),
        ([row("2", "They")], "word 1 should come; '2' came"),
        ([row("1", "They", "_", "_", "_", "_", "7", "x"), ""], "the head '7' is no word"),
        ([row("1", "They", "_", "_", "_", "_", "-1", "x"), ""], "the head '-1' is no word"),
        ([row("1-x", "They")], "'1-x' is no range of words"),
        ([row("1-3", "They"), row("1", "Th"), ""], "ends at word 3, beyond"),
    ],
)
def test_broken_files_are_refused_with_their_line(lines: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        list(conllu_sentences(lines, "dev.conllu"))


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.conllu"
    path.write_bytes("# text = café\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"is not UTF-8 \(byte"):
        list(read_conllu(path))


def test_coreference_table() -> None:
    text = "The kids left, so they ran and they hid."
    lines = [f"{text}\t18:22\t4:8", f"{text}\t31:35\t4:8", "# a remark"]
    (sentence,) = coreference_sentences(lines)
    assert sentence.coreference == (((18, 22), (4, 8)), ((31, 35), (4, 8)))
    with pytest.raises(InputError, match=r"line 1: text, pronoun and antecedent .* 1 column came"):
        list(coreference_sentences([text]))
    with pytest.raises(InputError, match="99:100 does not lie in a text of 40 characters"):
        list(coreference_sentences([f"{text}\t99:100\t4:8"]))
    with pytest.raises(InputError, match=r"start:end in characters.*'they' came"):
        list(coreference_sentences([f"{text}\tthey\tkids"]))


def test_recognisers() -> None:
    text = "On 12 March 2021 Maria Novak paid $3,000 (7%) in Oslo by 2024-03-12, twelve days late."
    found = {
        kind: [text[start:end] for start, end in spans] for kind, spans in recognised(text).items()
    }
    assert found["date"] == ["12 March 2021", "2024-03-12"]
    assert found["number"] == ["$3,000", "7%", "twelve"]
    assert found["name"] == ["Maria Novak", "Oslo"]


def test_plain_text_is_cut_into_sentences() -> None:
    lines = ["Dr. Novak left. He took", "the bus! (It was late.) Then", "", "A new paragraph"]
    assert list(sentences_in(lines)) == [
        "Dr. Novak left.", "He took the bus!", "(It was late.)", "Then", "A new paragraph",
    ]  # fmt: skip


def cut(sentence: Sentence, *pieces: str) -> TokenisedSentence:
    """The sentence in the given pieces; < > are special tokens."""
    tokens, place = [], 0
    for number, piece in enumerate(pieces):
        if piece == "<>":
            tokens.append(Token(number, piece, place, place, special=True))
            continue
        start = sentence.text.index(piece, place)
        tokens.append(Token(number, piece, start, start + len(piece)))
        place = start + len(piece)
    return tokenised(sentence, tuple(tokens))


def test_pieces_of_a_word_are_one_unit_and_words_in_one_token_too() -> None:
    (sentence,) = conllu_sentences(DONT)
    read = cut(sentence, "<>", "The", "y", " don", "'t", " sle", "ep", ".", "<>")
    assert [unit.text for unit in read.units] == ["<>", "They", "don't", "sleep", ".", "<>"]
    assert [unit.words for unit in read.units] == [(), (0,), (1, 2), (3,), (4,), ()]
    assert read.unit_of_word == {0: 1, 1: 2, 2: 2, 3: 3, 4: 4}
    assert read.merged == 2
    across = cut(sentence, "They do", "n't", " sleep", ".")  # a token across a word border
    assert [unit.text for unit in across.units] == ["They don't", "sleep", "."]


def test_relations_go_both_ways_between_units() -> None:
    (sentence,) = conllu_sentences(DONT)
    read = cut(sentence, "They", " don", "'t", " sleep", ".")
    found = built_in.relations(read)
    assert found["nsubj → head"] == {0: [2]} and found["head → nsubj"] == {2: [0]}
    assert found["aux → head"] == {1: [2]} and found["punct → head"] == {3: [2]}


def test_the_other_properties_on_one_sentence() -> None:
    words = ["the", "cat", "saw", "the", "dog", "and", "the", "cat", "ran"]
    text, place, annotated = " ".join(words), 0, []
    for word in words:
        annotated.append(AnnotatedWord(word, place, place + len(word)))
        place += len(word) + 1
    ids = {word: number for number, word in enumerate(dict.fromkeys(words))}
    tokens = tuple(Token(ids[word.text], word.text, word.start, word.end) for word in annotated)
    read = tokenised(Sentence(text, tuple(annotated)), tokens)
    assert built_in.same_token(read) == {3: [0], 6: [0, 3], 7: [1]}
    assert built_in.induction(read) == {3: [1], 6: [1, 4], 7: [2]}
    assert built_in.BUILT_IN["previous token"].named(read)
    targets = dict(built_in.BUILT_IN["previous token"].named(read))["previous token"]
    assert targets[1] == (0,) and 0 not in targets
    given = built_in.given_words(["the dog"]).targets(read)
    assert given[0] == [3, 4] and given[3] == [4]


def test_a_corpus_is_a_path_a_text_or_sentences(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("One sentence. Another one.\n")
    assert [one.text for one in corpus_of(path)] == ["One sentence.", "Another one."]
    assert [one.text for one in corpus_of("A text. Of two.")] == ["A text.", "Of two."]
    given: list[str | Sentence] = [plain_sentence("Ready made."), "A plain text"]
    assert [one.text for one in corpus_of(given)] == ["Ready made.", "A plain text"]
    assert corpus_of(given).again and not corpus_of(iter(given)).again
    with pytest.raises(InputError, match=r"there is no file 'missing\.conllu'"):
        corpus_of("missing.conllu")
    with pytest.raises(InputError, match="is a folder"):
        corpus_of(tmp_path)
    with pytest.raises(InputError, match="a corpus gives texts or sentences; int came"):
        list(corpus_of(number for number in (3,)))  # type: ignore[misc]


def test_built_in_sentences_are_annotated_rightly() -> None:
    made = list(made_sentences(24))
    assert made == list(made_sentences(24))
    for sentence in made:
        assert all(sentence.text[w.start : w.end] == w.text for w in sentence.words)
        roots = [word for word in sentence.words if word.head is None]
        assert len(roots) == 1
        for pronoun, antecedent in sentence.coreference:
            assert sentence.text[slice(*pronoun)] == "they" and antecedent[0] < pronoun[0]
    assert Sentence.from_plain(made[0].to_plain()) == made[0]


def test_spacy_annotates_plain_text() -> None:
    spacy = pytest.importorskip("spacy")
    words = ["Maria", "Novak", "sleeps", "."]
    document = spacy.tokens.Doc(
        spacy.blank("en").vocab, words=words, spaces=[True, True, False, False],
        pos=["PROPN", "PROPN", "VERB", "PUNCT"], heads=[1, 2, 2, 2],
        deps=["compound", "nsubj", "ROOT", "punct"], ents=["B-PERSON", "I-PERSON", "O", "O"],
    )  # fmt: skip
    sentence = sentence_of(document)
    assert sentence.text == "Maria Novak sleeps."
    assert [(word.text, word.head, word.relation) for word in sentence.words] == [
        ("Maria", 1, "compound"), ("Novak", 2, "nsubj"), ("sleeps", None, ""), (".", 2, "punct"),
    ]  # fmt: skip
    assert sentence.spans["entity PERSON"] == ((0, 11),)
    read = cut(sentence, "Maria", " Novak", " sleeps", ".")
    assert built_in.entities(read)["entity PERSON"] == {0: [1], 1: [0], 2: [0, 1], 3: [0, 1]}
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    (found,) = corpus_of("We met in Oslo.", spacy=pipeline)
    assert found.spans["entity GPE"] == ((10, 14),) and not found.parsed


def test_a_missing_pipeline_or_spacy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("spacy") is not None:
        with pytest.raises(InputError, match="spaCy has no pipeline 'no_such_pipeline'"):
            spacy_pipeline("no_such_pipeline")
    monkeypatch.setitem(sys.modules, "spacy", None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match="spaCy needs an optional package"):
        spacy_pipeline("en_core_web_sm")
