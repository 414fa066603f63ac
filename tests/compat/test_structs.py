"""All public names of aiokafka exist, and are of the same kind."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pathlib
import pickle
import pkgutil
from typing import Any

import pytest

import aiokwire.compat.aiokafka as compat
from aiokwire import errors as ours
from aiokwire.compat.aiokafka import errors, partitioner, structs
from aiokwire.error_codes import ErrorCode
from aiokwire.records import Record


def theirs(module: str = "") -> Any:
    return importlib.import_module(f"aiokafka.{module}" if module else "aiokafka")


aiokafka = theirs()
for _name in ("admin.config_resource", "errors", "helpers", "partitioner", "structs"):
    theirs(_name)

# Public classes by module, compared method by method.
CLASSES = [
    ("", "AIOKafkaProducer"),
    ("", "AIOKafkaConsumer"),
    ("admin", "AIOKafkaAdminClient"),
    ("admin", "NewTopic"),
    ("admin", "NewPartitions"),
    ("admin", "RecordsToDelete"),
    ("abc", "ConsumerRebalanceListener"),
    ("abc", "AbstractTokenProvider"),
]
ERRORS = sorted(
    name for name, found in vars(aiokafka.errors).items() if isinstance(found, type) and issubclass(found, Exception)
)


def own(module: str) -> Any:
    return importlib.import_module(f"aiokwire.compat.aiokafka.{module}" if module else "aiokwire.compat.aiokafka")


@pytest.mark.parametrize("module", ["", "abc", "admin", "errors", "structs", "helpers", "partitioner", "util"])
def test_every_public_name_of_a_module_exists(module: str) -> None:
    public = getattr(theirs(module), "__all__", [name for name in dir(theirs(module)) if name == "create_ssl_context"])
    missing = [name for name in public if not hasattr(own(module), name)]
    assert not missing


@pytest.mark.parametrize(("module", "name"), CLASSES)
def test_classes_have_the_same_methods_with_the_same_parameters_and_defaults(module: str, name: str) -> None:
    original, replacement = getattr(theirs(module), name), getattr(own(module), name)
    for method, function in inspect.getmembers(original, inspect.isfunction):
        if method.startswith("_") and method != "__init__":
            continue
        expected = inspect.signature(function).parameters
        found = inspect.signature(getattr(replacement, method)).parameters
        assert list(found) == list(expected), method
        for parameter in expected.values():
            same = found[parameter.name]
            assert same.kind is parameter.kind, f"{method}({parameter.name})"
            if isinstance(parameter.default, (int, str, bool, float, type(None))):
                assert same.default == parameter.default, f"{method}({parameter.name})"


@pytest.mark.parametrize("name", ERRORS)
def test_errors_keep_their_hierarchy_code_and_flags(name: str) -> None:
    original, replacement = getattr(aiokafka.errors, name), getattr(errors, name)
    bases = {base.__name__ for base in original.__mro__}
    assert bases <= {base.__name__ for base in replacement.__mro__}
    assert issubclass(replacement, ours.KafkaError)
    for attribute in ("errno", "message", "retriable", "invalid_metadata"):
        if hasattr(original, attribute):
            assert getattr(replacement, attribute) == getattr(original, attribute)


def test_errors_of_codes_are_the_same() -> None:
    for code in range(-1, 134):
        assert errors.for_code(code).__name__ == aiokafka.errors.for_code(code).__name__


def test_errors_are_created_without_arguments_and_show_code_and_class() -> None:
    assert str(errors.UnknownTopicOrPartitionError()) == "[Error 3] UnknownTopicOrPartitionError"
    assert str(errors.KafkaTimeoutError("too late")) == "KafkaTimeoutError: too late"
    assert errors.NotLeaderForPartitionError("x").code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert errors.OffsetOutOfRangeError({"a": 1}).args == ({"a": 1},)


def test_errors_of_a_broker_are_translated_with_their_cause() -> None:
    cause = ours.error_for(29, "Fetch of orders[0]", topic="orders")
    found = errors.translated(cause)
    assert type(found) is errors.TopicAuthorizationFailedError
    assert isinstance(found, ours.AuthorizationError)
    assert found.__cause__ is cause
    assert "orders[0]" in str(found)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ours.ClosedError("x"), errors.ProducerClosed),
        (ours.ConnectionFailed("x"), errors.KafkaConnectionError),
        (ours.AuthenticationFailed("x"), errors.AuthenticationFailedError),
        (ours.RequestTimedOut("x"), errors.KafkaTimeoutError),
        (ours.BufferFullError("x"), errors.KafkaTimeoutError),
        (ours.CommitFailed("x"), errors.CommitFailedError),
        (ours.NoOffset("x"), errors.NoOffsetForPartitionError),
        (ours.OffsetOutOfRange("x"), errors.OffsetOutOfRangeError),
        (ours.CorruptRecord("x"), errors.CorruptRecordException),
        (ours.TransactionStateError("x"), errors.IllegalOperation),
        (ours.InvalidArgument("x"), ValueError),
        (ours.error_for(90, "x"), errors.ProducerFenced),
        (ours.TransactionAborted("x", reason=ours.error_for(10, "x")), errors.MessageSizeTooLargeError),
        (ours.DeliveryFailed("x", stage="in flight"), errors.KafkaTimeoutError),
    ],
)
def test_other_errors_are_translated_by_their_class(error: ours.KafkaError, kind: type[Exception]) -> None:
    assert type(errors.translated(error)) is kind


def test_named_tuples_have_the_same_fields() -> None:
    for name in ("TopicPartition", "OffsetAndMetadata", "OffsetAndTimestamp", "RecordMetadata", "BrokerMetadata"):
        assert getattr(structs, name)._fields == getattr(aiokafka.structs, name)._fields


def test_records_are_consumer_records_with_all_their_attributes() -> None:
    record = Record("orders", 1, 7, 1000, b"key", b"value", [("a", b"1")])
    assert isinstance(record, compat.ConsumerRecord)
    for field in dataclasses.fields(aiokafka.ConsumerRecord):
        assert hasattr(record, field.name), field.name
    assert (record.checksum, record.serialized_key_size, record.serialized_value_size) == (None, 3, 5)
    assert Record("orders", 1, 7).serialized_value_size == -1
    assert pickle.loads(pickle.dumps(record)) == record


def test_applications_create_consumer_records() -> None:
    record: compat.ConsumerRecord[bytes, str] = compat.ConsumerRecord("t", 0, 1, 2, 0, b"k", "v", None, 1, 1, [])
    assert (record.topic, record.value) == ("t", "v")


@pytest.mark.parametrize("key", [b"", b"a", b"ab", b"abc", b"abcd", b"\xff" * 33])
def test_murmur2_is_the_same(key: bytes) -> None:
    assert partitioner.murmur2(key) == aiokafka.partitioner.murmur2(key)
    assert partitioner.DefaultPartitioner()(key, range(7), []) == aiokafka.partitioner.DefaultPartitioner()(
        key, range(7), []
    )


def test_a_record_without_a_key_goes_to_an_available_partition() -> None:
    choose = partitioner.DefaultPartitioner()
    assert {choose(None, range(4), [2]) for _ in range(8)} == {2}
    assert choose(None, range(4), []) in range(4)


def test_all_modules_of_the_layer_can_be_imported() -> None:
    root = pathlib.Path(compat.__file__).parent
    for found in pkgutil.walk_packages([str(root)], "aiokwire.compat.aiokafka."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
