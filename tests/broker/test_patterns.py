"""Client patterns: RE2's language, each name in linear time; none exhausts time or memory."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiokwire.broker.patterns import Budget, InvalidPattern, Pattern, PatternTooExpensive

NAMES = ["orders-eu-1", "orders-us-22", "payments", "a.b_c-D", "", "é", "two\nlines"]

ATOMS = [
    "a", "b", ".", "[ab]", "[^a]", "[a-c]", r"\w", r"\d", r"\W", "-", "_", "1", "(?:", "(", "|", ")", "*", "+",
    "?", "*?", "{2}", "{1,3}", "{0,2}", "{1,}", "^", "$", r"\b", r"\A", "(?i)", "(?P<n>",
]  # fmt: skip


@settings(deadline=None, max_examples=500)
@given(st.lists(st.sampled_from(ATOMS), max_size=10).map("".join), st.text("abAB1-_\n", max_size=7))
def test_common_syntax_matches_as_in_python(text: str, name: str) -> None:
    try:
        expected = re.compile(text.replace("$", r"\Z"), re.ASCII).fullmatch(name) is not None
        pattern = Pattern(text)
    except (re.error, InvalidPattern):
        return
    assert pattern.fullmatch(name) is expected


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        (r"orders-(eu|us)-\d+", ["orders-eu-1", "orders-us-22"]),
        (r"orders-.*", ["orders-eu-1", "orders-us-22"]),
        (r"(?i)PAY.*", ["payments"]),
        (r"(?i:A)\.b_c-d", []),
        (r"[[:alpha:]]+", ["payments"]),
        (r"[[:^alpha:]]", ["é"]),
        (r"\Qa.b\E_c-D", ["a.b_c-D"]),
        (r"a\x2eb\x{5f}c\055D", ["a.b_c-D"]),
        (r"", [""]),
        (r".*", [name for name in NAMES if "\n" not in name]),
        (r"(?s).*$", NAMES),
        (r"(?s)two.lines", ["two\nlines"]),
        (r"(?m)two$\n^lines", ["two\nlines"]),
        (r"(?m)two\n(?-m)^lines", []),
        (r"[]a-]+", []),
        (r"[^\W\d]+", ["payments"]),
        (r"\pxyz|payments{1}", None),
        (r"payment{s", []),
        (r"(?:(?:pay)+ments)??", ["payments", ""]),
        (r"\w+\b-\w+\B.*", ["orders-eu-1", "orders-us-22"]),
    ],
)
def test_re2s_syntax(text: str, matching: list[str] | None) -> None:
    if matching is None:
        with pytest.raises(InvalidPattern):
            Pattern(text)
        return
    assert Pattern(text).select(NAMES) == matching


@pytest.mark.parametrize(
    "text",
    [
        "(", ")", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", r"(a)\1", r"\Z", r"\p{L}", r"\C", "\\", "a**", "a*+",
        "a{2}{3}", "*a", "a{1001}", "a{3,2}", "[a", "[b-a]", r"[a-\d]", "[[:no:]]", "(?P<a>b)(?P<a>c)", "(?x)a",
        r"\x{110000}", "a" * 32_000,
        "(" * 10_000, "(" * 5000 + ")" * 5000, "(a{1000}){1000}", "((a?){100}){1000}", "(a|b){1000}" * 50,
    ],
)  # fmt: skip
def test_other_syntax_is_refused_at_once(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InvalidPattern):
        Pattern(text)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("text", "plain", "dashed"),
    [
        ("(a+)+$", True, False),
        ("^(a+)+$", True, False),
        ("(a|a)*b", False, False),
        ("(a*)*b", False, False),
        ("(.*)(.*)(.*)(.*)[^a]", False, True),
        ("(a?){100}a{100}", False, False),
    ],
)
def test_a_pattern_that_backtracks_for_hours_takes_milliseconds(text: str, plain: bool, dashed: bool) -> None:
    for name, matches in (("a" * 249, plain), ("a" * 248 + "-", dashed)):
        started = time.process_time()
        assert Pattern(text).fullmatch(name) is matches
        assert time.process_time() - started < 1


@pytest.mark.parametrize("text", ["|".join(f"topic-{number}" for number in range(700)), "(?:a|b)*a(?:a|b){12}"])
def test_long_lists_and_many_states_are_matched(text: str) -> None:
    names = [f"topic-{number}" for number in range(0, 2000, 7)] + ["ab" * number for number in range(30)]
    assert Pattern(text).select(names) == [name for name in names if re.fullmatch(text, name)]


def test_a_match_with_too_many_steps_is_refused() -> None:
    names = ["a" * number for number in range(249)]
    started = time.process_time()
    with pytest.raises(PatternTooExpensive):
        Pattern("((a?){100}){90}").select(names)
    assert time.process_time() - started < 2


def test_patterns_of_one_question_share_a_budget() -> None:
    budget = Budget(100)
    assert Pattern("a+b", budget).select(["aab", "ab"]) == ["aab", "ab"]
    with pytest.raises(PatternTooExpensive):
        Pattern("c" * 200, budget)
