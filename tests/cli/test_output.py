"""Tables and tab-separated lines: control characters in stored data never reach a terminal."""

from __future__ import annotations

import io
import sys
import unicodedata
from collections.abc import Callable

import pytest
from click.testing import Result

from aiokwire.cli.output import print_report, print_table

CLEAR_SCREEN = "\x1b[2J\x1b]0;owned\x07"
FORGED = "client\tEmpty\n\r\x9b31m\u202elive"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def unsafe(text: str) -> set[str]:
    return {each for each in text if unicodedata.category(each) in {"Cc", "Cf", "Cs"} and each not in "\n\t"}


def test_tab_separated_output_has_one_line_per_row_and_one_column_per_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("", ["group", "client\tid"], [[CLEAR_SCREEN, FORGED], ["plain", 1_000]])
    written = capsys.readouterr().out
    assert [line.split("\t") for line in written.splitlines()] == [
        ["group", "client\\tid"],
        ["\\x1b[2J\\x1b]0;owned\\x07", "client\\tEmpty\\n\\r\\x9b31m\\u202elive"],
        ["plain", "1000"],
    ]


@pytest.mark.parametrize("show", [print_table, print_report])
def test_a_table_on_a_terminal_shows_control_characters_as_text(
    show: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    for name, value in {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", terminal)
    show(f"Group {CLEAR_SCREEN}", ["client", "host"], [[FORGED, CLEAR_SCREEN]])
    written = terminal.getvalue()
    assert unsafe(written) == set()
    assert "Group \\x1b[2J" in written
    assert "client\\tEmpty\\n\\r\\x9b31m\\u202elive" in written


@pytest.mark.parametrize("text", ["[red]x[/red]", "[/nothing]", "[link=http://localhost]x", ":smile:"])
def test_a_table_shows_markup_characters_unchanged(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(text, ["value"], [[text]])
    assert capsys.readouterr().out.count(text) == 2


def test_the_name_of_a_group_cannot_control_the_terminal(run: Callable[..., Result], topic: str) -> None:
    group = f"{topic}{CLEAR_SCREEN}\n\tforged"
    begun = run("groups", "reset", group, "--topic", topic, "--to-offset", "0", "--yes")
    assert begun.exit_code == 0, begun.output
    for arguments in (["list"], ["describe", group], ["delete", group, "--yes"]):
        shown = run("groups", *arguments)
        assert shown.exit_code == 0, shown.output
        assert unsafe(shown.output) == set(), arguments
        assert "\\x1b[2J\\x1b]0;owned\\x07\\n\\tforged" in shown.output
