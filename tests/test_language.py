"""Prose and names use the words of Kafka's and asyncio's documentation.

Each row of BANNED is a phrase that read as translated, and what to write instead. It holds for
every file of the repository that people write: code with its names, comments and texts, tests,
documents. `python -m tests.test_language` prints the occurrences of each phrase, `... PATH ...`
each of them in these files.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".md", ".toml", ".sh", ".html", ""}
NOT_OURS = ("aiokwire/protocol/messages/", "LICENSE", "tests/test_language.py")


class Phrase(NamedTuple):
    pattern: re.Pattern[str]
    instead: str


def phrase(pattern: str, instead: str) -> Phrase:
    """A pattern of whole words; `_` counts as a space, so that names are found, too."""
    words = pattern.replace(" ", r"(?:_|\s+(?:#\s+)?)")
    return Phrase(re.compile(rf"(?<![a-zA-Z]){words}(?![a-zA-Z])", re.IGNORECASE), instead)


BANNED = [
    phrase("(?:is|are|was|were|be|been|being) told", "receives, is notified of, is given"),
    phrase("(?:tell(?!\\()|tells|told|telling)", "send, report, return, notify, name, show"),
    phrase("(?:say|says|said|saying)", "report, return, state, name, document; 'the message names ...'"),
    phrase("(?:go|goes|going|went|gone) on", "continue, resume, keep"),
    phrase(
        "(?:nobody|somebody|everybody|nobody's|somebody's|everybody's)", "name the component, the client or the user"
    ),
    phrase("(?:whoever|whosoever)", "name the component, the caller or the user"),
    phrase("(?<!there.)(?:is|are|was|were) no (?!longer|more|such)[a-z]+", "is not a, must be a"),
    phrase("anew", "again, re-"),
    phrase("(?:come|comes|came|coming) again", "is delivered again, is repeated"),
    phrase("for ever", "forever, without a limit"),
    phrase("(?:so many|so long|so much)(?! (?:that|as))", "the count, the duration: 'count', 'for N seconds'"),
    phrase("(?:trouble|troubles)", "error, failure, last_error"),
    phrase("(?:gravest|graver|gravely)", "most severe"),
    phrase("be had", "be available"),
    phrase("(?:doublet|doublets|doubled records?)", "duplicate"),
    phrase("(?:time-out|time-outs)", "timeout"),
    phrase("(?:set-up|set-ups|look-up|look-ups|log-in)", "setup, lookup, login"),
    phrase("in vain", "without success; name the result"),
    phrase("(?:befall|befalls|befell)", "happen to, affect"),
    phrase(
        "(?:farewell|goodbye|hindrance|stumble|stumbles|stumbled|doomed)",
        "the state's name: closing, last_error, failures",
    ),
    phrase("(?:make|makes|made|making) known", "report, publish"),
    phrase("(?:at its|to its|at their) word", "trust, use as given"),
    phrase(
        "(?:as it were|so to speak|all the same|of one's own|of its own accord)", "leave it out, 'still', 'your own'"
    ),
    phrase("(?:one|those|him|it) who", "name the subject"),
    phrase("(?:takes|take|took|taken) its leave", "leave"),
    phrase("(?:lies|lie|lay) about", "remain"),
    phrase("(?:stir|stirs|stirred)", "wake, speed up, trigger"),
    phrase("(?:in hand|at hand)", "buffered, available, being processed"),
    phrase("for good", "permanently; reject, fence"),
    phrase("how often(?! it was sent)", "the number of calls, the interval"),
    phrase("(?:line|lines) of the log", "log line"),
    phrase("(?:became|become) of", "the outcome of, the result of"),
    phrase("not one by one", "not individually"),
]


class Found(NamedTuple):
    place: str
    text: str
    instead: str


def files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [
        ROOT / name
        for name in listed.stdout.splitlines()
        if not name.startswith(NOT_OURS) and Path(name).suffix in SUFFIXES and (ROOT / name).is_file()
    ]


def occurrences(path: Path) -> list[Found]:
    text = path.read_text(errors="replace")
    return [
        Found(f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}", match.group(), instead)
        for pattern, instead in BANNED
        for match in pattern.finditer(text)
    ]


def test_prose_and_names_use_the_words_of_the_field() -> None:
    found = [one for path in files() for one in occurrences(path)]
    assert not found, "\n" + "\n".join(f"{place}: {text!r}: write {instead}" for place, text, instead in found[:60])


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("the dispatcher is told of it", "the dispatcher receives it"),
        ("a_member_is_told", "a_member_is_notified"),
        ("'x' is no assignor", "'x' is not an assignor; there is no assignor of that name"),
        ("the topic was made anew", "the topic was recreated"),
        ("reading goes\n    # on after it", "reading resumes after it"),
    ],
)
def test_a_phrase_is_found_in_prose_and_in_names_and_its_replacement_is_not(wrong: str, right: str) -> None:
    def matches(text: str) -> bool:
        return any(pattern.search(text) for pattern, _ in BANNED)

    assert matches(wrong)
    assert not matches(right)


if __name__ == "__main__":
    chosen = [Path(name).resolve() for name in sys.argv[1:]]
    if chosen:
        for one in files():
            if any(one == part or part in one.parents for part in chosen):
                for place, text, instead in occurrences(one):
                    print(f"{place}: {text!r}: write {instead}")
    else:
        counts: Counter[tuple[str, str]] = Counter()
        for one in files():
            for found in occurrences(one):
                counts[one.relative_to(ROOT).parts[0], " ".join(found.text.lower().replace("_", " ").split())] += 1
        for (part, text), count in counts.most_common():
            print(f"{count:5} {part:12} {text}")
