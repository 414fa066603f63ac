from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from aiokwire.errors import ConfigurationError
from aiokwire.spark.decode.options import Format, Mode, Side
from aiokwire.spark.offsets import Kind, Place
from aiokwire.spark.options import (
    COLUMNS,
    Delivery,
    OnDataLoss,
    SourceOptions,
    parse_sink,
    parse_source,
)
from aiokwire.types import Acks, Compression, IsolationLevel, TopicPartition

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def source(**options: str) -> SourceOptions:
    named = {name.replace("__", "."): text for name, text in options.items()}
    if not named.keys() & {"subscribe", "assign", "subscribePattern"}:
        named["subscribe"] = "orders"
    return parse_source(SERVERS | named, streaming=False)


def stream(**options: str) -> SourceOptions:
    return parse_source(SERVERS | {"subscribe": "orders"} | options, streaming=True)


def test_the_defaults_are_those_of_spark_sql_kafka() -> None:
    batch = source()
    assert batch.start == Place(Kind.EARLIEST, option="startingOffsets")
    assert batch.end == Place(Kind.LATEST, option="endingOffsets")
    assert stream().start.kind is Kind.LATEST
    assert batch.columns == COLUMNS[:-1]
    assert batch.consumer.isolation is IsolationLevel.READ_UNCOMMITTED
    assert batch.on_data_loss is OnDataLoss.FAIL
    assert batch.max_trigger_delay == 900
    assert batch.decoding.is_plain


def test_names_are_understood_in_any_case() -> None:
    options = {"KAFKA.Bootstrap.Servers": "a:1", "SUBSCRIBE": "orders", "startingoffsets": '{"orders":{"0":7}}'}
    found = parse_source(options, streaming=False)
    assert found.start.by_partition == {TopicPartition("orders", 0): 7}
    assert found.consumer.bootstrap_servers == "a:1"


def test_options_travel_to_the_tasks() -> None:
    options = source(columns="value", subscribe="a,b")
    assert pickle.loads(pickle.dumps(options)) == options
    sink = parse_sink(SERVERS | {"topic": "orders"})
    assert pickle.loads(pickle.dumps(sink)) == sink


@pytest.mark.parametrize(
    ("options", "nearest"),
    [
        ({"startingOffset": "earliest"}, "startingOffsets"),
        ({"subscibe": "orders"}, "subscribe"),
        ({"maxOffsetPerTrigger": "5"}, "maxOffsetsPerTrigger"),
        ({"bootstrap.servers": "a:1"}, "kafka.bootstrap.servers"),
        ({"kafka.isolation.levle": "read_committed"}, "kafka.isolation.level"),
        ({"kafka.max.partition.fetch.byte": "5"}, "kafka.max.partition.fetch.bytes"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_name(options: dict[str, str], nearest: str) -> None:
    with pytest.raises(ConfigurationError, match=f"did you mean '{nearest}'"):
        parse_source(SERVERS | {"subscribe": "orders"} | options, streaming=True)


def test_an_unknown_option_of_the_sink_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'delivery'"):
        parse_sink(SERVERS | {"delivry": "exactly-once"})


def test_servers_must_be_named() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.bootstrap\.servers must be set"):
        parse_source({"subscribe": "orders"}, streaming=False)


@pytest.mark.parametrize("options", [{}, {"subscribe": "a", "subscribePattern": "b"}])
def test_exactly_one_choice_of_topics_is_needed(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="one of subscribe, assign and subscribePattern"):
        parse_source(SERVERS | options, streaming=False)


def test_topics_are_chosen_by_name_partition_or_pattern() -> None:
    assert source(subscribe=" a , b,a").topics.names == ("a", "b")
    assert source(assign='{"a":[0,2]}').topics.partitions == {TopicPartition("a", 0), TopicPartition("a", 2)}
    assert source(subscribePattern="a.*").topics.pattern == "a.*"
    with pytest.raises(ConfigurationError, match="not a regular expression"):
        source(subscribePattern="a(")


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"startingOffsets": "earliest"}, Kind.EARLIEST),
        ({"startingOffsets": '{"a":{"0":3}}'}, Kind.OFFSETS),
        ({"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":1000}}'}, Kind.TIMESTAMPS),
        ({"startingOffsetsByTimestamp": '{"a":{"0":1000}}', "startingTimestamp": "1000"}, Kind.TIMESTAMP),
    ],
)
def test_times_come_before_offsets(options: dict[str, str], kind: Kind) -> None:
    assert source(**options).start.kind is kind


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"a":{"0":-1}}'},
        {"endingOffsets": "earliest"},
        {"endingOffsets": '{"a":{"0":-2}}'},
        {"startingOffsets": "soon"},
        {"startingOffsets": '{"a":{"0":-3}}'},
        {"startingTimestamp": "-5"},
        {"maxOffsetsPerTrigger": "5"},
        {"commitGroup": "lag"},
    ],
)
def test_a_batch_refuses_options_of_streams_and_invalid_offsets(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        source(**options)


def test_a_stream_refuses_an_end() -> None:
    with pytest.raises(ConfigurationError, match="endingOffsets has no meaning in a stream"):
        stream(endingOffsets="latest")


@pytest.mark.parametrize(
    "options",
    [
        {"minPartitions": "0"},
        {"minPartitions": "four"},
        {"maxBytesPerPartition": "4 parsec"},
        {"includeHeaders": "yes"},
        {"failOnDataLoss": "true", "onDataLoss": "fail"},
        {"onDataLoss": "panic"},
        {"columns": "value,colour"},
        {"columns": "value,value"},
        {"value.format": "json"},
        {"value.schema": "a int"},
        {"columnNameOfCorruptRecord": "value"},
        {"columnNameOfCorruptRecord": "_bad"},
        {"columnNameOfCorruptRecord": "_bad", "mode": "failfast", "value.format": "string"},
        {"value.format": "avro"},
        {"value.schema.registry": "http://a:1", "value.format": "json", "value.schema": "a int"},
        {"value.schema.writer": "{}", "value.schema.registry": "x", "value.format": "avro", "value.schema": "{}"},
        {"deadLetterTopic": "dead"},
        {"deadLetterTopic": "dead", "value.format": "string", "mode": "failfast"},
        {"deadLetterTopic": "orders", "value.format": "string"},
        {"kafka.auto.offset.reset": "earliest"},
        {"kafka.fetch.min.bytes": "many"},
        {"kafka.fetch.max.bytes": "0"},
        {"kafka.security.protocol": "TLS"},
        {"subscribe": " , "},
    ],
)
def test_invalid_values_are_refused_with_the_options_name(options: dict[str, str]) -> None:
    name = next(iter(options)).removeprefix("kafka.")
    with pytest.raises(ConfigurationError, match=f"{name.replace('.', '[._]')}"):
        parse_source(SERVERS | {"subscribe": "orders"} | options, streaming=False)


def test_a_dead_letter_topic_must_not_be_a_topic_that_is_read() -> None:
    for chosen in ({"assign": '{"a":[0]}'}, {"subscribePattern": "a|b"}, {"subscribe": "b,a"}):
        with pytest.raises(ConfigurationError, match="deadLetterTopic cannot be 'a', which is read"):
            source(value__format="string", deadLetterTopic="a", **chosen)
    assert source(subscribePattern=".*", value__format="string").decoding.dead_letter_topic == ""


def test_sizes_and_times_have_units() -> None:
    assert source(maxBytesPerPartition="64m").max_bytes_per_partition == 64 * 2**20
    assert source(maxBytesPerPartition="1000").max_bytes_per_partition == 1000
    assert stream(maxBytesPerTrigger="1GB").max_bytes_per_trigger == 2**30
    assert stream(maxTriggerDelay="250ms").max_trigger_delay == 0.25
    assert stream(maxTriggerDelay="90000").max_trigger_delay == 90  # milliseconds, as in spark-sql-kafka


def test_the_minimum_of_a_trigger_must_not_exceed_its_maximum() -> None:
    with pytest.raises(ConfigurationError, match="minOffsetsPerTrigger"):
        stream(minOffsetsPerTrigger="10", maxOffsetsPerTrigger="5")


def test_columns_are_chosen_and_headers_are_optional() -> None:
    assert source(columns="Offset, value").columns == ("offset", "value")
    assert source(includeHeaders="true").columns == COLUMNS
    assert source(includeHeaders="true", columns="value").columns == ("value", "headers")


def test_data_loss_is_set_by_either_option_name() -> None:
    assert source(failOnDataLoss="false").on_data_loss is OnDataLoss.REPORT
    assert source(onDataLoss="SKIP").on_data_loss is OnDataLoss.SKIP


def test_decoding_is_configured_for_key_and_value() -> None:
    found = source(key__format="string", value__format="json", value__schema="a int", mode="DROPMALFORMED").decoding
    assert (found.key, found.value) == (Side(Format.STRING), Side(Format.JSON, "a int"))
    assert found.mode is Mode.DROPMALFORMED
    avro = source(value__format="avro", value__schema="12", value__schema__registry="http://registry:8081").decoding
    assert avro.value == Side(Format.AVRO, "12", registry="http://registry:8081")
    dead = source(value__format="string", deadLetterTopic="dead").decoding
    assert dead.dead_letter_topic == "dead"


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("kafka.isolation.level", "read_committed", "isolation_level", "read_committed"),
        ("kafka.max.partition.fetch.bytes", "1048576", "max_partition_fetch_bytes", 1048576),
        ("kafka.check.crcs", "FALSE", "check_crcs", False),
        ("kafka.request.timeout.ms", "5000", "request_timeout_ms", 5000.0),
        ("kafka.client.id", "job", "client_id", "job"),
        ("kafka.client.rack", "eu-1a", "client_rack", "eu-1a"),
    ],
)
def test_kafkas_own_options_reach_the_consumer(name: str, text: str, field: str, value: Any) -> None:
    found = parse_source(SERVERS | {"subscribe": "orders", name: text}, streaming=False)
    assert getattr(found.consumer, field) == value


def test_options_of_javas_client_without_effect_are_accepted() -> None:
    options = SERVERS | {
        "subscribe": "a",
        "kafka.max.poll.records": "5000",
        "kafka.group.id": "g",
        "groupIdPrefix": "p",
    }
    assert parse_source(options, streaming=False).commit_group is None, "only commitGroup commits"


def test_kafkas_own_options_reach_the_producer() -> None:
    options = SERVERS | {"kafka.compression.type": "lz4", "kafka.acks": "all", "kafka.linger.ms": "20"}
    producer = parse_sink(options).producer
    assert (producer.codec, producer.acks, producer.linger_ms) == (Compression.LZ4, Acks.ALL, 20.0)


def test_the_sinks_own_options() -> None:
    found = parse_sink(
        SERVERS | {"topic": "out", "delivery": "exactly-once", "sink.id": "s", "checkpointLocation": "/c"}
    )
    assert (found.topic, found.delivery, found.sink_id) == ("out", Delivery.EXACTLY_ONCE, "s")
    assert found.checkpoint_location == "/c"


def test_serializers_cannot_be_given() -> None:
    with pytest.raises(ConfigurationError, match=r"kafka\.value\.serializer cannot be set"):
        parse_sink(SERVERS | {"kafka.value.serializer": "org.example.Custom"})


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("kafka.sasl.oauth.token.provider", "kafka.sasl.oauthbearer.token.endpoint.url"),
        ("kafka.sasl_oauth_token_provider", "kafka.sasl.oauthbearer.token.endpoint.url"),
        ("kafka.oauth_cb", "kafka.sasl.oauthbearer.token.endpoint.url"),
        ("kafka.sasl.credentials.provider", "kafka.sasl.jaas.config"),
        ("kafka.sasl.client.factory", "programs without Spark"),
        ("kafka.ssl.context", "kafka.ssl.truststore.location"),
    ],
)
def test_an_option_that_is_a_function_is_refused_with_advice(name: str, advice: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{re.escape(name)} cannot be set: .* options as text: .*{advice}"):
        parse_sink(SERVERS | {"topic": "orders", name: "<function token at 0x7f00>"})


def test_the_text_of_a_function_is_not_taken_for_a_password() -> None:
    def current_password() -> str:
        return "secret"

    with pytest.raises(ConfigurationError, match=r"kafka\.sasl\.password was given a Python object"):
        parse_sink(SERVERS | {"topic": "orders", "kafka.sasl.password": str(current_password)})


def test_options_of_tls_and_logins_become_the_clients() -> None:
    assert source(kafka__security__protocol="PLAINTEXT").consumer.security_protocol == "PLAINTEXT"
    sink = parse_sink(SERVERS | {"topic": "orders", "kafka.security.protocol": "SSL"})
    assert sink.producer.uses_tls
    with pytest.raises(ConfigurationError, match="ssl_truststore_location has no effect"):
        source(kafka__ssl__truststore__location="/etc/ca.pem")
