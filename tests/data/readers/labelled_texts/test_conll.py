"""CoNLL and CoNLL-U: a word and its tag on each line."""

from pathlib import Path

import pytest

from saccade.data.readers import TextColumns, labelled_text_splits, read_labelled_texts
from saccade.data.readers.labelled_texts import conll
from saccade.errors import DataError


def read(path: Path, raw: str, **columns: str) -> list[tuple[tuple[str, ...], object]]:
    path.write_text(raw)
    found = read_labelled_texts(path, "train", TextColumns(**columns))
    assert found.kind == "tags"
    return [(row.words, row.label) for row in found.rows]


WANTED = [(("We", "eat"), ("O", "B-X")), (("Eat",), ("O",))]


@pytest.mark.parametrize(
    "text",
    [
        "We O\neat B-X\n\nEat O\n",
        "We\tO\neat\tB-X\n\nEat\tO",
        "\n\nWe  PRP  O\neat   VB B-X \n \n\nEat VB O\n\n\n",
        "-DOCSTART- -X- O O\n\nWe PRP I-NP O\neat VB I-VP B-X\n\n-DOCSTART- O\nEat VB I O\n",
        "# id 7-a domain=en\nWe _ _ O\neat _ _ B-X\n\n# id 8\tdomain=en\nEat _ _ O\n",
        "We\tO\r\neat\tB-X\r\n\r\nEat\tO\r\n",
        "Word\tPOS\tner_tags\nWe\tPRP\tO\neat\tVBP\tB-X\n\nEat\tVB\tO\n",
        "token label\n\nWe O\neat B-X\n\nEat O\n",
    ],
)
@pytest.mark.parametrize("name", ["a.conll", "a.txt", "a.tsv", "a.bio"])
def test_sentences_are_read_in_every_way_to_write_them(
    text: str, name: str, tmp_path: Path
) -> None:
    if name == "a.tsv" and text.startswith(("-", "#", "\n")):
        assert read(tmp_path / name, text, task="tags") == WANTED
    else:
        assert read(tmp_path / name, text) == WANTED


UNIVERSAL = (
    "# sent_id = 1\n# text = We don't eat\n"
    "1\tWe\twe\tPRON\tPRP\t_\t4\tnsubj\t_\t_\n"
    "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_\n"
    "3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_\n"
    "3.1\tever\tever\tADV\tRB\t_\t_\t_\t_\t_\n"
    "4\teat\teat\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
    "1\t#\t#\tSYM\tNN\t_\t0\troot\t_\t_\n"
    "2\t1 000\t1000\tNUM\tCD\t_\t1\tdep\t_\t_\n"
)


@pytest.mark.parametrize("name", ["en-ud-train.conllu", "train.conll", "train.txt"])
def test_universal_dependencies_are_known(name: str, tmp_path: Path) -> None:
    words = [("We", "do", "n't", "eat"), ("#", "1 000")]
    upos = [("PRON", "AUX", "PART", "VERB"), ("SYM", "NUM")]
    xpos = [("PRP", "VBP", "RB", "VB"), ("NN", "CD")]
    path = tmp_path / name
    assert read(path, UNIVERSAL) == list(zip(words, upos))
    assert read(path, UNIVERSAL, label="xpos") == list(zip(words, xpos))
    assert read(path, UNIVERSAL, label="5") == list(zip(words, xpos))
    lemmas = [row for row, _ in read(path, UNIVERSAL, text="lemma")]
    assert lemmas[0] == ("we", "do", "not", "eat")
    assert labelled_text_splits(tmp_path) == ["train"]


def test_columns_are_chosen_by_number(tmp_path: Path) -> None:
    text = "We PRP O\neat VB B-X\n"
    assert read(tmp_path / "a.conll", text, label="2") == [(("We", "eat"), ("PRP", "VB"))]
    assert read(tmp_path / "a.conll", text, text="2") == [(("PRP", "VB"), ("O", "B-X"))]
    with pytest.raises(DataError, match="no column 'pos': columns of CoNLL have no names; give"):
        read(tmp_path / "a.conll", text, label="pos")
    with pytest.raises(DataError, match=r"a\.conll:1: not 7 columns: 3 found"):
        read(tmp_path / "a.conll", text, label="7")
    with pytest.raises(DataError, match="1 for the first, or one of id, form"):
        read(tmp_path / "a.conllu", UNIVERSAL, label="pos")


def test_a_hash_is_a_word_where_it_is_one(tmp_path: Path) -> None:
    assert read(tmp_path / "a.conll", "# O\n1 B-X\n") == [(("#", "1"), ("O", "B-X"))]


def test_a_bad_line_spoils_its_sentence_and_no_other(tmp_path: Path) -> None:
    raw = b"a O\nb O\n\nc O\nd\ne O\n\nf O\n\xff O\n\ng O\n"
    (tmp_path / "a.conll").write_bytes(raw)
    read = read_labelled_texts(tmp_path / "a.conll", "train", skip_bad=2)
    assert [row.words for row in read.rows] == [("a", "b"), ("g",)]
    assert [row.where for row in read.rows] == [f"{tmp_path}/a.conll:{n}" for n in (1, 11)]
    assert [(problem.line, problem.reason) for problem in read.problems] == [
        (5, "not 2 columns: 1 found"),
        (9, "not UTF-8: byte 0xff at offset 0 of the line"),
    ]


def test_words_without_tags_are_a_test_alone(tmp_path: Path) -> None:
    for name in ("train.txt", "test.txt"):
        (tmp_path / name).write_text("We\neat\n")
    read = read_labelled_texts(tmp_path, "test")
    assert [(row.words, row.label) for row in read.rows] == [(("We", "eat"), None)]
    assert read.summary() == "1 sentence without labels from test.txt"
    with pytest.raises(DataError, match=r"train.txt:1: no label: a word without a tag"):
        read_labelled_texts(tmp_path, "train")


def test_the_files_of_conll_2003_are_its_splits(tmp_path: Path) -> None:
    for ending in ("train", "testa", "testb"):
        (tmp_path / f"eng.{ending}").write_text(f"{ending} O\n")
    assert labelled_text_splits(tmp_path) == ["train", "valid", "test"]
    words = [read_labelled_texts(tmp_path, s).rows[0].words for s in ("train", "valid", "test")]
    assert words == [("train",), ("testa",), ("testb",)]


def test_a_sentence_without_end_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conll, "MAX_WORDS", 100)
    (tmp_path / "a.conll").write_text("a O\n" * 1000 + "\nb O\n")
    read = read_labelled_texts(tmp_path / "a.conll", "train", skip_bad=1)
    assert [row.words for row in read.rows] == [("b",)]
    assert str(read.problems[0]).endswith(":101: too long: over 100 words without a blank line")


def test_the_bare_text_beside_universal_dependencies_is_left_aside(tmp_path: Path) -> None:
    (tmp_path / "en-ud-train.conllu").write_text(UNIVERSAL)
    (tmp_path / "en-ud-train.txt").write_text("We don't eat\n\n# 1 000\n")
    assert len(read_labelled_texts(tmp_path, "train").rows) == 2


def test_a_table_of_texts_without_names_is_not_taken_for_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not words: there are blanks in each; a table of texts"):
        read(tmp_path / "a.txt", "we eat\tgood\nwe sleep\tbad\n")


ONTONOTES = """#begin document (bc/cctv/00/cctv_0000); part 000
bc/cctv 0 0 In IN (TOP(S(PP* - - - A * * -
bc/cctv 0 1 the DT (NP* - - - A (DATE* * -
bc/cctv 0 2 summer NN *) - - - A *) * -
bc/cctv 0 3 Rome NNP * - - - A (GPE) * -

bc/cctv 0 0 We PRP (TOP(S(NP*) - - - A * (ARG0*) * -
bc/cctv 0 1 go VBP (VP* go 01 1 A * (V*) * -
bc/cctv 0 2 eat VB (VP*)))) eat 01 1 A * * (V*) -

bc/cctv 0 0 Rome NNP (TOP*) - - - A (GPE) -

bc/cctv 0 0 We PRP (TOP(NP* - - - A * -
bc/cctv 0 1 two CD *)) - - - A (CARDINAL) * -

#end document
"""


def test_ontonotes_is_read_by_its_marks_of_documents(tmp_path: Path) -> None:
    (tmp_path / "train.gold_conll").write_text(ONTONOTES)
    read = read_labelled_texts(tmp_path, "train", skip_bad=1)
    assert [(row.words, row.label) for row in read.rows] == [
        (("In", "the", "summer", "Rome"), ("O", "B-DATE", "I-DATE", "B-GPE")),
        (("We", "go", "eat"), ("O", "O", "O")),
        (("Rome",), ("B-GPE",)),
    ]
    assert [(one.line, one.reason) for one in read.problems] == [(14, "not 12 columns: 13 found")]
    read = read_labelled_texts(tmp_path, "train", TextColumns(label="5"), skip_bad=1)
    assert read.rows[0].label == ("IN", "DT", "NN", "NNP")


def test_lines_that_no_blank_line_parts_are_not_one_long_sentence(tmp_path: Path) -> None:
    file = tmp_path / "train.txt"
    file.write_text("(3 (2 It) (4 good))\n" * 300)
    with pytest.raises(DataError) as caught:
        read_labelled_texts(file, "train")
    assert str(caught.value) == (
        f"{file} has no blank line among its first 300, and in CoNLL one ends each sentence; texts "
        "with classes may be a .tsv or .csv whose first line names the columns, or lines as "
        "__label__NAME text"
    )
