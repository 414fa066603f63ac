"""Every example of README.md and docs/**/*.md: programs run as printed, commands and options exist.

`tests/testing/test_plugin.py` runs the examples of docs/testing.md, which are tests of a service,
and `tests/test_tutorial.py` those of the tutorial. The names of pages with programs are unique.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from aiokwire.cli.main import cli
from aiokwire.spark.options import parse_sink, parse_source

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Not run here, because a Spark session needs a JVM and a minute. Their syntax, imports and options are checked instead;
# `make integration-spark` runs the same calls.
NEEDS_SPARK = re.compile(r"\bspark\b|pyspark|\btotals\.")
RUN_ELSEWHERE = {"testing.md", "11-tests.md"}


def examples(language: str) -> Iterator[tuple[str, str]]:
    """Yield name (page:line) and text of each block in a language."""
    for page in PAGES:
        text = page.read_text()
        for match in FENCE.finditer(text):
            if match[1] in language.split(","):
                yield f"{page.name}:{text.count(chr(10), 0, match.start()) + 2}", match[2]


PROGRAMS = [(name, text) for name, text in examples("python") if name.partition(":")[0] not in RUN_ELSEWHERE]
RUNNABLE = [(name, text) for name, text in PROGRAMS if not NEEDS_SPARK.search(text)]
SPARK = [(name, text) for name, text in PROGRAMS if NEEDS_SPARK.search(text)]

# The output of the programs, by page, in order.
PRINTED = {
    "README.md": ((r"orders 0 0", r"b'42' b'paid'", r"b'once'"),),
    "clients.md": (
        (r"buffered: 2 waiting for room: 0", r"withdrawn: True", r"stored at 0"),
        (r"low=0, high=3", r"orders\[0\] \[\{'id': 1\}, \{'id': 2\}\]"),
        (r"billed orders b'book'", r"billed orders b'lamp'", r"billed refunds b'pen'"),
        (r"RebalanceEnded", r"orders\[\d\] b'book'", r"orders\[\d\] b'lamp'"),
        (r"b'BOOK'", r"b'PEN'", r"b'LAMP'"),
    ),
    "logging.md": (
        (r'"client_id": "billing-1", "event": "group \'billing\': joined generation 1', r'"group_id": "billing"'),
        (r'"text": "no connection", "node_id": 1',),
    ),
    "tracing.md": (
        (r"send orders <- root", r"send invoices <- process orders", r"process orders <- send orders"),
        (r"in the sender's trace: 14576827793038113322513871894673895836",),
    ),
    "observability.md": (
        (r"orders 1", r"0 bytes buffered"),
        (r'sent_messages_total{.*messaging_client_id="orders-out".*} 1.0',),
        (r"messaging.client.sent.messages {message}", r"messaging.client.operation.duration s"),
        (r"orders-out \d\d+ values",),
    ),
    "worker.md": (
        (r"billed Order\(id=7, amount=19.9\) attempt 1", r"b'7: 19.90'"),
        (r"inserted \[.+\] attempt \d", r"clicks \d+ \["),
        (
            r"\['broken-1', 'broken-2', 'broken-3', 'early-1', 'early-2', 'forged-1', 'old-1'\]",
            r"b'broken' b'the database is down'",
            r"b'forged' b'the signature is wrong'",
        ),
        (r"broken attempt 6 of orders 0", r"b'orders' after b'6' attempts"),
        (r"bill opened: 3 failure\(s\) in a row - the database is down", r"bill closed after", r"0 dead letters"),
        (r"\[b'book', b'lamp'\]",),
        (r"the last total is 42",),
        (r"billed book failure: None",),
        (),  # it asserts
    ),
    "dead_letters.md": ((r"b'{\"number\": 7}' b'orders' b'0'", r"b'no customer for order 7' b'paid'"),),
    "web.md": (
        (r"\{'offset': 0\}", r"202", r"'ready': True"),
        (r"\{'offset': 0\}", r"'ready': True"),
    ),
    "outbox.md": ((r"balance 5 32\nbalance 12 32\n",),),
    "security.md": ((r"stored at 0", r"topic 'salaries': TOPIC_AUTHORIZATION_FAILED"),),
    "aiokafka.md": ((r"stored at 0\n\[b'paid', b'sent'\]\ncommitted 2",),) * 2,
    "confluent-kafka.md": ((r"stored at 0\nstored at 1\nb'42' b'paid'\nb'42' b'sent'",),) * 2,
    "index.md": ((r"stored at orders 0\nbilled b'alice' b'book'",),),
    "errors.md": ((r"stage: metadata\ncause: UNKNOWN_TOPIC_OR_PARTITION",),),
    "01-install.md": ((r"aiokwire \d+\.\d+",),),
    "02-broker.md": ((r"listening on 127.0.0.1:\d+\ninvoices 1\norders 4",),),
    "03-producer.md": ((r"at offset 0\naccepted.*\nthen stored at offset 1\nstored 1000 more, failed: 0",),),
    "04-consumer.md": ((r"one: {'id': 1} of orders", r"list: {'id': 3}", r"no record arrived within 0.1 s"),),
    "05-groups.md": ((r"shared: 2 and 2\n(billed order-\d\n){3}after the restart: order-\d",),),
    "06-errors.md": (
        (
            r"stored at 0 after 2 refusals",
            r"rejected: the record for orders is too large",
            r"failed: .*topic 'ordres' does not exist",
            r"wrong: Producer has no option 'linger'; did you mean 'linger_ms'\?",
        ),
    ),
    "07-worker.md": ((), (r"attempt 1 of order 1", r"attempt 2 of order 2", r"gave up: b'a negative amount'")),
    "08-web.md": ((),),
    "09-configuration.md": ((), (), (r"did you mean AIOKWIRE_GROUP_ID\?",)),
    "10-metrics.md": ((r'waiting_records{messaging_client_id="shop"} 0.0', r'sent_messages_total{.*"orders".*} 1.0'),),
    "12-security.md": ((r"a wrong password is refused", r"orders: 0", r"invoices: TOPIC_AUTHORIZATION_FAILED"),),
    "arrow.md": ((r"sent 30000", r"'key', 'value', 'headers'", r"/page-0 10000\n/page-1 10000\n/page-2 10000"),),
    "bulk-inserts.md": ((r"rows: 1000$",),),
    "from-a-time.md": ((r"since noon: b'afternoon'\nsince five: b'evening'",),),
    "json.md": ((r"Order\(id=1, item='book'\)\nskipped offset 1 b'not JSON'\nOrder\(id=2, item='pen'\)",),),
    "move-a-group.md": ((r"orders\[0\] lag 0\norders\[0\] continues at 7",),),
    "once-per-record.md": ((r"balance: 5",),),
    "parallel.md": ((r"in order: True\nseveral at a time: True",),),
    "sigterm.md": ((r"billed b'first'\nbilled b'last'\nstopped\norders\[0\] committed 2",),),
    "table-in-memory.md": ((r"{b'book': b'8.90'}",),),
    "to-the-end.md": ((r"^1000 records",),),
    "topic-to-topic.md": ((r"101 large orders",),),
}


@pytest.mark.timeout(90)
@pytest.mark.parametrize(("name", "program"), RUNNABLE, ids=[name for name, _ in RUNNABLE])
def test_a_printed_program_runs(name: str, program: str, tmp_path: Path) -> None:
    if "client_metrics=True" in program:
        pytest.importorskip("opentelemetry.proto")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = name.partition(":")[0]
    position = [each for each, _ in RUNNABLE if each.startswith(page)].index(name)
    for expected in PRINTED[page][position]:
        assert re.search(expected, done.stdout), done.stdout


def test_the_output_of_every_program_is_checked() -> None:
    counted = Counter(name.partition(":")[0] for name, _ in RUNNABLE)
    assert counted == {page: len(printed) for page, printed in PRINTED.items()}
    assert len(SPARK) >= 10


@pytest.mark.parametrize(("name", "program"), SPARK, ids=[name for name, _ in SPARK])
def test_a_spark_example_compiles_and_uses_existing_names_and_options(name: str, program: str) -> None:
    tree = ast.parse(program, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("aiokwire"):
            module = importlib.import_module(node.module)
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []
    for chain in calls_of(tree):
        for verb, options in sides(chain):
            if verb.startswith("read"):
                parse_source(options, streaming=verb == "readStream")
            else:
                parse_sink(options)


def calls_of(tree: ast.AST) -> list[list[tuple[str, list[object]]]]:
    """Return the names and constant arguments of chains such as `spark.read.option("a", "b")`."""
    inner: set[ast.AST] = set()
    chains = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node not in inner:
            chain: list[tuple[str, list[object]]] = []
            link: ast.AST = node
            while isinstance(link, (ast.Call, ast.Attribute)):
                inner.add(link)
                if isinstance(link, ast.Attribute):
                    chain.append((link.attr, []))
                    link = link.value
                elif isinstance(link.func, ast.Attribute):
                    given: list[object] = [each.value for each in link.args if isinstance(each, ast.Constant)]
                    chain.append((link.func.attr, given))
                    link = link.func.value
                else:
                    break
            chains.append(chain[::-1])
    return chains


def sides(chain: list[tuple[str, list[object]]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the reads and writes of a chain that use aiokwire, each with its options."""
    starts = [n for n, (name, _) in enumerate(chain) if name in {"read", "readStream", "write", "writeStream"}]
    for start, end in itertools.pairwise([*starts, len(chain)]):
        part = chain[start:end]
        options = {str(given[0]): str(given[1]) for name, given in part if name == "option"}
        if ("format", ["aiokwire"]) in part and {name for name, _ in part} & {"load", "save", "start"}:
            options.pop("checkpointLocation", None)
            if options:
                yield part[0][0], options


def commands() -> Iterator[tuple[str, str]]:
    for name, block in examples(",sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("aiokwire "):
                yield name, line.removesuffix(" &")


@pytest.mark.parametrize(("name", "line"), list(commands()), ids=[line[:60] for _, line in commands()])
def test_a_command_and_its_options_exist(name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line, comments=True)[1:]
    for word in words:
        if re.fullmatch(r"\w+\.(txt|toml|properties)", word):
            Path(word).touch()
    command: click.Command = cli
    context = click.Context(cli, info_name="aiokwire")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, f"{name}: aiokwire has no verb {words[0]!r}"
        command = found
        context = click.Context(command, parent=context, info_name=words.pop(0))
    command.make_context(command.name, words, parent=context.parent)  # raises UsageError


def test_every_named_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert "demo-spark" in targets
    for page in PAGES:
        text = page.read_text()
        named = set(re.findall(r"`make ([a-z][a-z-]*)", text)) | set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
        assert named - targets == set(), page.name
