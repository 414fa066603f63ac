"""The tables of the migration guides: every public name and option has a row, and rows are true.

Names come from the installed packages by introspection; librdkafka's options from its library.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import aiokafka  # type: ignore[import-untyped]
import aiokafka.abc  # type: ignore[import-untyped]
import aiokafka.admin  # type: ignore[import-untyped]
import aiokafka.admin.config_resource  # type: ignore[import-untyped]
import aiokafka.errors  # type: ignore[import-untyped]
import aiokafka.helpers  # type: ignore[import-untyped]
import aiokafka.partitioner  # type: ignore[import-untyped]
import aiokafka.structs  # type: ignore[import-untyped]
import confluent_kafka
import confluent_kafka.admin
import confluent_kafka.aio
import pytest

import aiokwire
import aiokwire.admin
from aiokwire import ConsumerConfig, ErrorCode, ProducerConfig
from aiokwire.admin import AdminConfig
from aiokwire.cluster.dotted_options import translated_options
from aiokwire.errors import ConfigurationError, error_for
from aiokwire.migration import rules

GUIDES = Path(__file__).parents[2] / "docs" / "migrating"
STATUSES = {"same", "better", "different", "gone", "ignored"}


class Row(NamedTuple):
    ours: str
    status: str
    advice: str


@cache
def sections(page: str) -> Mapping[str, Mapping[str, Row]]:
    """Return the tables of a guide: title, name, row."""
    found: dict[str, dict[str, Row]] = {}
    for section in (GUIDES / page).read_text().split("\n### ")[1:]:
        title, _, text = section.partition("\n")
        rows = found.setdefault(title, {})
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| `"):
                assert len(cells) == 4, line
                for name in re.findall(r"`([^`]+)`", cells[0]):
                    assert name not in rows, f"{title}: {name} has two rows"
                    rows[name] = Row(*cells[1:])
    return found


def rows(page: str, *titles: str) -> dict[str, Row]:
    tables = sections(page)
    return {name: row for title in titles for name, row in tables[title].items()}


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def options(client: type) -> set[str]:
    parameters = inspect.signature(client.__init__).parameters.values()  # type: ignore[misc]
    return {each.name for each in parameters if each.kind is each.KEYWORD_ONLY}


def own_names(module: ModuleType) -> Iterator[str]:
    """Yield the names that a module defines itself, not those that it imports."""
    for name in public(module):
        value = getattr(module, name)
        is_foreign = isinstance(value, ModuleType) or getattr(value, "__module__", "").startswith(("typing", "_cffi"))
        if not is_foreign and name not in ("string_type", "Any"):
            yield name


AIOKAFKA = "aiokafka.md"
CONFLUENT = "confluent-kafka.md"
PRODUCER = aiokafka.AIOKafkaProducer
CONSUMER = aiokafka.AIOKafkaConsumer
ADMIN = aiokafka.admin.AIOKafkaAdminClient


def fields(*classes: Any) -> set[str]:
    return {name for each in classes for name in (getattr(each, "_fields", ()) or each.__dataclass_fields__)}


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Names of the package", set(aiokafka.__all__)),
        ("AIOKafkaProducer: options", options(PRODUCER)),
        ("AIOKafkaProducer: methods", public(PRODUCER)),
        ("AIOKafkaConsumer: options", options(CONSUMER)),
        ("AIOKafkaConsumer: methods", public(CONSUMER)),
        ("AIOKafkaAdminClient", options(ADMIN) | public(ADMIN) | set(aiokafka.admin.__all__)),
        ("AIOKafkaAdminClient", {"ConfigResource", "ConfigResourceType"}),
        (
            "ConsumerRebalanceListener and AbstractTokenProvider",
            public(aiokafka.ConsumerRebalanceListener) | public(aiokafka.abc.AbstractTokenProvider),
        ),
        (
            "ConsumerRecord and other values",
            fields(
                aiokafka.structs.ConsumerRecord, aiokafka.structs.RecordMetadata, aiokafka.structs.OffsetAndMetadata,
                aiokafka.structs.OffsetAndTimestamp, aiokafka.structs.TopicPartition,
                aiokafka.structs.BrokerMetadata, aiokafka.structs.PartitionMetadata,
            ),
        ),
        ("Other modules", {"create_ssl_context", "DefaultPartitioner", *rules.ASSIGNORS, "AbstractTokenProvider"}),
    ],
)  # fmt: skip
def test_every_public_name_of_aiokafka_has_a_row(title: str, names: set[str]) -> None:
    assert names - sections(AIOKAFKA)[title].keys() == set()


def errors_of_aiokafka() -> dict[str, type[Exception]]:
    found = {name: getattr(aiokafka.errors, name) for name in public(aiokafka.errors)}
    return {name: each for name, each in found.items() if inspect.isclass(each) and issubclass(each, Exception)}


def test_every_error_of_aiokafka_has_a_row_and_a_rule() -> None:
    table = sections(AIOKAFKA)["Errors"]
    assert errors_of_aiokafka().keys() - table.keys() == set()
    assert table.keys() - errors_of_aiokafka().keys() == set(), "errors that aiokafka does not have"
    for name, row in table.items():
        assert re.findall(r"`([^`]+)`", row.ours) == list(rules.ERRORS.get(name, ())), name
        assert (row.status == "gone") == (name not in rules.ERRORS)


# The errors that the client reports by another class than that of the broker's code.
OTHER_CLASSES = {
    "CorruptRecordException", "InvalidMessageError", "IllegalGenerationError", "IllegalSaslStateError",
    "OffsetOutOfRangeError", "RebalanceInProgressError", "RequestTimedOutError", "SaslAuthenticationFailed",
    "UnknownError", "UnknownMemberIdError", "UnsupportedSaslMechanismError",
}  # fmt: skip


def test_errors_with_a_code_become_the_class_of_that_code() -> None:
    for name, error in errors_of_aiokafka().items():
        number = getattr(error, "errno", None)
        if number is not None and name in rules.ERRORS and name not in OTHER_CLASSES:
            assert rules.ERRORS[name] == (type(error_for(number, "")).__name__,), name


def test_the_rules_name_what_exists() -> None:
    homes = {rules.ROOT: aiokwire, rules.ADMIN: aiokwire.admin}
    for name in rules.NAMES.values():
        assert hasattr(homes[rules.HOMES.get(name, rules.ROOT)], name)
    for names in rules.ERRORS.values():
        assert all(hasattr(aiokwire, name) and hasattr(aiokwire.errors, name) for name in names)
    for name in (*rules.RENAMED_OPTIONS, *rules.DROPPED_OPTIONS):
        assert name in options(PRODUCER) | options(CONSUMER) | options(ADMIN)
    for kind, names in ((rules.PRODUCER, PRODUCER), (rules.CONSUMER, CONSUMER), (rules.ADMIN_CLIENT, ADMIN)):
        assert {name for name in rules.ADVICE[kind] if not name.startswith("_")} <= public(names) | {"client"}


CONFIGS = {
    "AIOKafkaProducer: options": (PRODUCER, ProducerConfig),
    "AIOKafkaConsumer: options": (CONSUMER, ConsumerConfig),
    "AIOKafkaAdminClient": (ADMIN, AdminConfig),
}


@pytest.mark.parametrize("title", CONFIGS)
def test_options_that_are_kept_exist_here_and_the_others_are_dropped_or_renamed(title: str) -> None:
    client, config = CONFIGS[title]
    ours = {field.name for field in dataclasses.fields(config)}
    for name in options(client):
        row = sections(AIOKAFKA)[title][name]
        if row.status == "gone":
            assert name in rules.DROPPED_OPTIONS
        else:
            assert rules.RENAMED_OPTIONS.get(name, name) in ours, name


def test_defaults_that_are_written_down_are_those_of_aiokafka() -> None:
    defaults = {name: each.default for name, each in inspect.signature(CONSUMER.__init__).parameters.items()}
    written = rules.DEFAULTS[rules.CONSUMER]
    assert defaults["isolation_level"] == written["isolation_level"].strip('"')
    assert str(defaults["session_timeout_ms"]) == written["session_timeout_ms"]
    (assignor,) = defaults["partition_assignment_strategy"]
    assert rules.ASSIGNORS[assignor.__name__] == written["partition_assignment_strategy"].strip('"')
    sender = {name: each.default for name, each in inspect.signature(PRODUCER.__init__).parameters.items()}
    assert (str(sender["linger_ms"]), str(sender["max_batch_size"])) == (
        rules.DEFAULTS[rules.PRODUCER]["linger_ms"],
        rules.DEFAULTS[rules.PRODUCER]["batch_size"],
    )


def test_every_status_is_one_of_the_five_and_gone_has_advice() -> None:
    for page in (AIOKAFKA, CONFLUENT):
        for title, table in sections(page).items():
            assert table, f"{page}: {title} has no rows"
            for name, row in table.items():
                assert row.status in STATUSES, f"{title}: {name}"
                assert row.ours or row.advice or row.status in ("same", "ignored", "gone"), f"{title}: {name}"


def test_names_of_aiokwire_in_the_tables_exist() -> None:
    """The second column names attributes of the clients, options, or public classes."""
    known = public(aiokwire) | public(aiokwire.admin) | {"__version__"}
    for client in (
        aiokwire.Producer,
        aiokwire.Consumer,
        aiokwire.Admin,
        aiokwire.Transaction,
        aiokwire.RebalanceListener,
    ):
        known |= public(client)
    for config in (ProducerConfig, ConsumerConfig):
        known |= {field.name for field in dataclasses.fields(config)}
    known |= {*ErrorCode.__members__, "token", "code", "retriable", "__version__", "hooks"}
    known |= {"topic_partition", "metadata", "timestamp", "partitions"}
    for page in (AIOKAFKA, CONFLUENT):
        for table in sections(page).values():
            for name, row in table.items():
                for ours in re.findall(r"`([^`]+)`", row.ours):
                    assert ours.rpartition(".")[2] in known, f"{name}: {ours}"


# --- confluent-kafka --------------------------------------------------------------------------------------------------


def parameters(client: Any) -> set[str]:
    return set(inspect.signature(client.__init__).parameters) - {"self"}


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Producer", public(confluent_kafka.Producer)),
        ("Consumer", public(confluent_kafka.Consumer)),
        ("AdminClient", public(confluent_kafka.admin.AdminClient)),
        ("AIOProducer", public(confluent_kafka.aio.AIOProducer) | parameters(confluent_kafka.aio.AIOProducer)),
        ("AIOConsumer", public(confluent_kafka.aio.AIOConsumer) | parameters(confluent_kafka.aio.AIOConsumer)),
        ("Message", public(confluent_kafka.Message)),
        ("Names of the package", {*own_names(confluent_kafka), *own_names(confluent_kafka.aio)}),
        ("Names of confluent_kafka.admin", set(own_names(confluent_kafka.admin))),
    ],
)
def test_every_public_name_of_confluent_kafka_has_a_row(title: str, names: set[str]) -> None:
    assert names - sections(CONFLUENT)[title].keys() == set()


def test_every_code_and_attribute_of_its_errors_has_a_row_or_the_same_name() -> None:
    table = sections(CONFLUENT)["TopicPartition, KafkaError, KafkaException"]
    error = confluent_kafka.KafkaError
    attributes = public(confluent_kafka.TopicPartition) | (
        public(confluent_kafka.KafkaException) - {"add_note", "with_traceback"}
    )
    for name in public(error) | attributes:
        if not name.isupper():
            assert name in table
        elif name in table:
            assert ErrorCode[table[name].ours.strip("`")] == getattr(error, name), name
        else:
            assert ErrorCode[name] == getattr(error, name), name


@cache
def options_of_librdkafka() -> frozenset[str]:
    """Return the options that librdkafka knows, of all the texts in its library."""
    folder = Path(str(confluent_kafka.__file__)).parents[1]
    data = b"".join(path.read_bytes() for path in folder.glob("confluent_kafka.libs/librdkafka*"))
    texts = {each.decode() for each in re.findall(rb"[a-z][a-z0-9_.]{2,}(?=\0)", data)}
    return frozenset(name for text in texts for name in _ends(text) if _is_known(name))


def _ends(text: str) -> set[str]:
    """Return a text and its ends: linkers keep one copy of `sticky.linger.ms` and `linger.ms`."""
    starts = [index for index in range(1, len(text)) if text[index - 1] in "._" or text.endswith("_cb")]
    return {text, *(text[index:] for index in starts if "." in text or text.endswith("_cb"))}


def _is_known(name: str) -> bool:
    for client, needed in ((confluent_kafka.Producer, {}), (confluent_kafka.Consumer, {"group.id": "g"})):
        try:
            client({**needed, name: "x"})
        except confluent_kafka.KafkaException as error:
            if "No such configuration property" in str(error):
                continue
        except (TypeError, ValueError):
            pass
        return True
    return False


TABLES = {
    "Options that from_dict accepts": "accepted",
    "Options that from_dict ignores": "ignored",
    "Options that from_dict refuses": "refused",
}


def test_every_option_of_librdkafka_has_a_row() -> None:
    listed = rows(CONFLUENT, *TABLES)
    assert len(options_of_librdkafka()) > 190
    assert options_of_librdkafka() - listed.keys() == set()
    assert listed.keys() - options_of_librdkafka() == set(), "options that librdkafka does not have"


@pytest.mark.parametrize("title", TABLES)
def test_from_dict_treats_options_as_the_tables_state(title: str) -> None:
    for name, row in sections(CONFLUENT)[title].items():
        outcome, ours = translated(name)
        assert outcome == TABLES[title], name
        assert row.ours.strip("`") == ours, name


def translated(name: str) -> tuple[str, str]:
    found: list[str] = []
    for config in (ProducerConfig, ConsumerConfig):
        try:
            found += translated_options(config, {name: "1"})
        except ConfigurationError:
            return "refused", ""
    return ("accepted", found[0]) if found else ("ignored", "")
