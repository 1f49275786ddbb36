"""Splits are found by file stems; where two files could be meant, the user is asked."""

from pathlib import Path

import pytest

from saccade.data.readers import read_pairs, read_texts, splits
from saccade.errors import DataError


def fill(folder: Path, *names: str) -> Path:
    """Files that hold their own name, so that what was read tells which was read."""
    for name in names:
        stem = name.removesuffix(".tsv")
        (folder / name).write_text(f"{stem}\t{stem}\n" if name.endswith("tsv") else f"{name}\n")
    return folder


def refusal(folder: Path, split: str = "train", source: str = "", target: str = "") -> str:
    with pytest.raises(DataError) as caught:
        read_pairs(folder, split, source=source, target=target)
    return str(caught.value)


@pytest.mark.parametrize(
    ("names", "split", "expected"),
    [
        (["train.txt", "pretrain.txt"], "train", "train.txt"),
        (["ptb.train.txt", "ptb.valid.txt"], "train", "ptb.train.txt"),
        (["wiki_train.txt", "train.txt"], "train", "train.txt"),
        (["valid.txt", "val.txt", "dev.txt"], "valid", "valid.txt"),
        (["val.txt", "x.valid.txt"], "valid", "val.txt"),
        (["._train.txt", "wiki-train.txt"], "train", "wiki-train.txt"),
        (["dev.txt"], "valid", "dev.txt"),
        (["validation.txt"], "valid", "validation.txt"),
        (["valid.txt"], "dev", "valid.txt"),
        (["ptb-dev.txt"], "valid", "ptb-dev.txt"),
        (["test.txt", "test_2016.txt", "x.test.txt"], "test", "test.txt"),
        (["test_2016_flickr.txt", "testimonials.txt"], "test", "test_2016_flickr.txt"),
        (["test2.txt"], "test", "test2.txt"),
        (["test_2016.txt", "test_2017.txt"], "test_2017", "test_2017.txt"),
        (["extra.txt", "train.txt"], "extra", "extra.txt"),
        (["train.en-de.txt", "valid.en-de.txt"], "valid", "valid.en-de.txt"),
        (["train.en-de.txt", "iwslt.train.txt"], "train", "train.en-de.txt"),
    ],
)
def test_a_split_is_found_by_its_stem(
    tmp_path: Path, names: list[str], split: str, expected: str
) -> None:
    assert read_texts(fill(tmp_path, *names), split).texts == [expected]


def test_texts_that_are_named_after_no_split_are_read_by_a_pattern(tmp_path: Path) -> None:
    fill(tmp_path, "a.txt", "b.txt")
    with pytest.raises(DataError, match="or all by a pattern: --data '") as caught:
        read_texts(tmp_path, "train")
    pattern = str(caught.value).rpartition(" --data ")[2].strip("'")
    assert read_texts(Path(pattern), "train").texts == ["a.txt", "b.txt"]


def test_wikitext_is_read_as_it_is_given_out(tmp_path: Path) -> None:
    fill(tmp_path, "wiki.train.tokens", "wiki.valid.raw")
    assert read_texts(tmp_path, "train").texts == ["wiki.train.tokens"]
    assert read_texts(tmp_path, "valid").texts == ["wiki.valid.raw"]


def test_several_stems_for_a_split_are_listed(tmp_path: Path) -> None:
    fill(tmp_path, "test_2016.tsv", "test_2017.tsv")
    assert refusal(tmp_path, "test") == (
        f"{tmp_path} has several files for 'test': test_2016, test_2017; "
        "pass the one you mean as the split, such as 'test_2016'"
    )


def test_a_split_that_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    told = refusal(fill(tmp_path, "train.tsv", "notes.txt"), "valid")
    assert told == (
        f"{tmp_path} has no 'valid' split: no valid file ending in .tsv, .csv, .jsonl, "
        ".json, .parquet, .arrow, .tar or .tmx (or these with .gz or .zst); it holds "
        "notes.txt, train.tsv; name a file so, or give one file as the data"
    )
    told = refusal(fill(tmp_path, "news2014.tsv", "train.tsv"), "test")
    assert "name a file so, pass another as the split, such as 'news2014', or give" in told
    (tmp_path / "bare").mkdir()
    assert "it holds nothing; name a file so" in refusal(tmp_path / "bare")


def test_splits_lists_those_that_exist_in_order(tmp_path: Path) -> None:
    assert splits(tmp_path) == []
    fill(tmp_path, "test_1.en", "test_2.en", "README", "train.log", ".train.txt.swp")
    assert splits(tmp_path) == ["train", "test"]  # .log may be a language
    assert splits(tmp_path, source="en", target="de") == ["test"]
    fill(tmp_path, "dev.jsonl", "x.train.parquet.gz")
    assert splits(tmp_path, source="en", target="de") == ["train", "valid", "test"]
    assert splits(tmp_path / "dev.jsonl") == ["train"]
    with pytest.raises(DataError, match="nowhere does not exist"):
        splits(tmp_path / "nowhere")


@pytest.mark.parametrize("split", ["valid", "test", "corpus"])
def test_a_single_file_is_all_train(tmp_path: Path, split: str) -> None:
    file = fill(tmp_path, "corpus.tsv") / "corpus.tsv"
    assert read_pairs(file, "train").pairs == [("corpus", "corpus")]
    assert refusal(file, split).startswith(
        f"{file} is a single file, so it is all train: there is no {split!r} in it"
    )


def test_a_single_file_of_the_wrong_form_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "a.en", "a.tsv", "story")
    assert "pairs are not read from a single .en file" in refusal(tmp_path / "a.en")
    with pytest.raises(DataError, match=r"texts are not read from \.tsv; give \.txt, "):
        read_texts(tmp_path / "a.tsv", "train")
    fill(tmp_path, "a.zip")
    assert "from a single .zip file; unpack it, or give .tsv, .csv" in refusal(tmp_path / "a.zip")
    assert read_texts(tmp_path / "a.en", "train").texts == ["a.en"]
    assert read_texts(tmp_path / "story", "train").texts == ["story"]


def test_parallel_files_of_unknown_order_are_refused_with_the_settings_to_give(
    tmp_path: Path,
) -> None:
    fill(tmp_path, "train.en", "train.de")
    assert refusal(tmp_path) == (
        f"{tmp_path} has train.de, train.en: say which is the source: --source en --target de"
    )
    assert "train.de, train.en, train.fr: say which" in refusal(fill(tmp_path, "train.fr"))
    read = read_pairs(tmp_path, "train", source="fr", target="de")
    assert read.pairs == [("train.fr", "train.de")]
    assert read.files == [str(tmp_path / "train.fr"), str(tmp_path / "train.de")]


@pytest.mark.parametrize(("source", "target"), [("src", "tgt"), ("source", "target")])
def test_endings_that_tell_the_order_need_no_settings(
    tmp_path: Path, source: str, target: str
) -> None:
    fill(tmp_path, f"train.{source}", f"train.{target}", "train.md")
    assert read_pairs(tmp_path, "train").pairs == [(f"train.{source}", f"train.{target}")]


def test_a_missing_partner_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "train.en")
    told = refusal(tmp_path, source="en", target="de")
    assert told == f"{tmp_path} has train.en but no train.de; pairs need both files"
    assert "has train.en but no train.de;" in refusal(tmp_path, source="de", target="en")
    assert "has train.en but no other language beside it" in refusal(tmp_path)


@pytest.mark.parametrize(("source", "target"), [("en", ""), ("", "de"), ("en", "en")])
def test_half_an_order_is_refused(tmp_path: Path, source: str, target: str) -> None:
    told = refusal(tmp_path, source=source, target=target)
    assert told.startswith(f"source={source!r} and target={target!r}: name two different")


@pytest.mark.parametrize(
    "names",
    [
        ("train.tsv", "train.jsonl"),
        ("train.tsv", "train.en", "train.de"),
        ("train.en", "train.en.gz"),
    ],
)
def test_two_forms_of_one_split_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    told = refusal(fill(tmp_path, *names), source="en", target="de")
    assert f"has {', '.join(sorted(names))} for one split; keep one of them" in told


@pytest.mark.parametrize("beside", ["train.csv", "train.json", "notes_train.csv"])
@pytest.mark.parametrize("name", ["train.txt", "train.jsonl"])
def test_csv_and_json_beside_texts_of_another_form_are_left_alone(
    tmp_path: Path, name: str, beside: str
) -> None:
    (tmp_path / name).write_text('{"text": "a"}\n')
    fill(tmp_path, beside)
    assert len(read_texts(tmp_path, "train").texts) == 1


@pytest.mark.parametrize("beside", ["train.csv", "train.json", "train.tmx", "my.train.csv"])
def test_csv_json_and_tmx_beside_parallel_files_are_left_alone(tmp_path: Path, beside: str) -> None:
    fill(tmp_path, "train.en", "train.fr", "valid.src", "valid.tgt", beside, "valid.csv")
    read = read_pairs(tmp_path, "train", source="en", target="fr")
    assert read.pairs == [("train.en", "train.fr")]
    assert read_pairs(tmp_path, "valid").pairs == [("valid.src", "valid.tgt")]


def test_half_a_pair_does_not_hide_csv_beside_it(tmp_path: Path) -> None:
    fill(tmp_path, "train.en", "valid.en", "valid.fr")
    (tmp_path / "train.csv").write_text("en,fr\na,b\n")
    assert "has train.csv, train.en for one split; keep one" in refusal(
        tmp_path, source="en", target="fr"
    )
    assert refusal(tmp_path).endswith("--source en --target fr")


def test_a_table_about_the_data_does_not_hide_them_in_their_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    fill(tmp_path / "data", "train.txt")
    fill(tmp_path, "sizes.csv")
    assert read_texts(tmp_path, "train").texts == ["train.txt"]


def test_opus_is_read_as_it_is_given_out(tmp_path: Path) -> None:
    fill(tmp_path, "Books.de-en.de", "Books.de-en.en", "Books.de-en.ids", "README", "LICENSE")
    assert refusal(tmp_path) == (
        f"{tmp_path} has Books.de-en.de, Books.de-en.en: say which is the source: "
        "--source en --target de"
    )
    assert splits(tmp_path, source="de", target="en") == splits(tmp_path) == ["train"]
    read = read_pairs(tmp_path, "train", source="de", target="en")
    assert read.pairs == [("Books.de-en.de", "Books.de-en.en")]
    fill(tmp_path, "Bible.de-en.de", "Bible.de-en.en")
    assert "has no 'train' split" in refusal(tmp_path, source="de", target="en")


SGM = """<refset setid='x'>
<hl><p>
<seg id='1'> {} &amp; c </seg>
</hl>
<seg id="2">b</seg>
"""


def test_test_sets_of_wmt_and_iwslt_are_read_as_they_are_given_out(tmp_path: Path) -> None:
    for name in ("newstest2014-deen-src.de.sgm", "newstest2014-deen-ref.en.sgm"):
        (tmp_path / name).write_text(SGM.format(name[-6:-4]))
    for name in ("IWSLT14.TED.dev2010.de-en.de.xml", "IWSLT14.TED.dev2010.de-en.en.xml"):
        (tmp_path / name).write_text(SGM.format(name[-6:-4]) + "<seg id='3'>x\n</seg>\n")
    for language in ("de", "en"):
        tags = f"<url>http://x</url>\n<title>{language}</title>\n{language}\n"
        (tmp_path / f"train.tags.de-en.{language}").write_text(tags)
    options = {"source": "de", "target": "en"}
    assert splits(tmp_path, **options) == ["train", "valid", "test"]
    assert read_pairs(tmp_path, "train", **options).pairs == [("de", "en")]
    assert read_pairs(tmp_path, "test", **options).pairs == [("de & c", "en & c"), ("b", "b")]
    with pytest.raises(DataError, match=r"de\.xml:6: not one segment: a <seg> that does not end"):
        read_pairs(tmp_path, "valid", **options)


TMX = """<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="EN-US"><seg>a <bpt i="1">&lt;b&gt;</bpt>&amp;
 c</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>d</seg></tuv></tu>
</body></tmx>
"""


def test_tmx_is_read_by_its_languages(tmp_path: Path) -> None:
    file = tmp_path / "train.tmx"
    file.write_text(TMX)
    assert refusal(file).endswith(
        ":3 has 'EN-US', 'de': say which is the source: --source EN-US --target de"
    )
    read = read_pairs(tmp_path, "train", source="en", target="de", skip_bad=1)
    assert read.pairs == [("a & c", "b")]
    assert [str(problem) for problem in read.problems] == [
        f"{file}:5: missing language: no 'en' and 'de'; it has 'en'"
    ]
    file.write_text(TMX.replace("</body>", ""))
    assert refusal(file, source="en", target="de").startswith(f"{file} is not TMX: mismatched tag")
    file.write_text(TMX.replace(' SYSTEM "tmx14.dtd"', ' [<!ENTITY x "y">]'))
    assert "is not TMX: entities of its own" in refusal(file, source="en", target="de")
    file.write_text(TMX.replace('"1.0"', '"1.0" encoding="foo"'))
    assert refusal(file, source="en", target="de") == (
        f"{file} is not TMX: unknown encoding: foo; save it again"
    )


def test_a_folder_of_configurations_names_one(tmp_path: Path) -> None:
    (tmp_path / "de-en").mkdir()
    fill(tmp_path / "de-en", "train.tsv")
    fill(tmp_path, "README.md")
    assert refusal(tmp_path).endswith(f"or give the folder below it: --data {tmp_path}/de-en")


def test_a_single_file_that_is_named_after_no_split_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "_about.txt")
    (tmp_path / "fra.txt").write_text("a\tb\n")
    assert refusal(tmp_path).endswith(f"or give it as the data: --data {tmp_path}/fra.txt")
