"""The CSV table of the teacher's mode: no spreadsheet runs a learner's text as a formula."""

import csv
import io
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiled_matmul.grader.reports import as_csv, as_json

SEPARATORS = ",;\t|"
FORMULA = "=+-@"
ALIKE = "".join(
    chr(n) for n in range(0x110000) if unicodedata.normalize("NFKC", chr(n))[0] in FORMULA
)
TEXT = st.text(st.sampled_from(f"{ALIKE}{SEPARATORS}\r\n\"'  \u3164\u0338\u200b\ufeffA1é"))


def table(path, message, points=0.5):
    one = {"exercise": "05.1", "status": "WRONG", "points": points, "max_points": 4, "hint": 1}
    evidence = {"message": message}
    graded = {"path": path, "exercises": [one | {"evidence": evidence}] * 2}
    return "".join(as_csv([graded, {"path": path, "error": message, "exercises": []}]))


def fields(text, separator):
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [field for row in rows for field in row]


def runs(field):
    """Would a spreadsheet take this field for a formula, now or after a look-alike is replaced?"""
    seen = field.lstrip(' \n\u3164\u0338\u200b\ufeff\u2007\u00a0"')
    first = unicodedata.normalize("NFKC", seen[:1])[:1]
    return field[:1] in ("\t", "\r") or (first != "" and first in FORMULA)


def test_there_are_look_alikes_beyond_full_width():
    assert {*"＝＋－＠﹢⁺₊⁼₌﹣﹫⩵"} <= set(ALIKE)


@given(TEXT, TEXT)
def test_no_field_begins_with_a_formula_by_whatever_separator(path, message):
    text = table(path, message)
    for separator in SEPARATORS:
        assert not [field for field in fields(text, separator) if runs(field)], separator


@pytest.mark.parametrize(
    "text",
    [
        *("=1+1", " =1+1", "＝1+1", "\t=1", "\r=1", "a;=1+1", "a;b; @x", "a|﹢1", 'a;"=1', "a\n=1"),
        *("\u3164=1", "\u0338=1", "=\u0338", "\u2212x", "a;\u207bx", "'\n-", '";"+1', "a\t=1"),
    ],
)
def test_these_are_made_harmless(text):
    for separator in SEPARATORS:
        assert not [field for field in fields(table(text, text), separator) if runs(field)]


def test_the_comma_of_the_table_itself_brings_text_back_as_it_was():
    for text in ("A (3, -1) is 2; right is 3", "x = y", 'say "a, b"', "a.ipynb", "été", "1-2"):
        rows = list(csv.DictReader(io.StringIO(table("p", text))))
        assert rows[0]["message"] == text


def test_numbers_stay_numbers():
    rows = list(csv.DictReader(io.StringIO(table("p", "", points=-1.5))))
    assert (rows[0]["points"], rows[0]["max_points"]) == ("-1.5", "4")


def test_json_is_what_json_makes_of_all_reports_at_once():
    reports = [{"path": "a\u2028b", "exercises": [], "error": "x\u2028y\nz"}, {"path": "c"}]
    text = "".join(as_json(reports))
    assert text == json.dumps({"submissions": reports}, indent=1, ensure_ascii=False) + "\n"
