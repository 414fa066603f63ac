"""The list of messages that editors read has the texts of every part of the package."""

import pytest

from tools.messages import Message, messages


@pytest.fixture(scope="module")
def found() -> list[Message]:
    return list(messages())


@pytest.mark.parametrize(
    ("path", "kind", "text"),
    [
        ("aiokwire/cluster/client.py", "error", "this client was closed; create a new one"),
        ("aiokwire/error_codes.py", "error", "a topic of this name already exists"),
        ("aiokwire/producer/_arguments.pyx", "error", "headers: a name must be a str, not {type(name).__name__}"),
        ("aiokwire/broker/patterns/syntax.py", "error", "nothing to repeat"),
        ("aiokwire/cluster/nodes.py", "log", "still no connection to %s: %s"),
        ("aiokwire/cli/topics.py", "help", "Delete topics with all their records."),
        ("aiokwire/cli/topics.py", "output", "deleted {name}"),
    ],
)
def test_the_list_has_logs_errors_and_help_of_python_and_of_compiled_modules(
    found: list[Message], path: str, kind: str, text: str
) -> None:
    assert (path, kind, text) in {(one.path, one.kind, one.text) for one in found}
