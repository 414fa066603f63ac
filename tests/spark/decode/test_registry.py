"""Schemas by id, from a registry on loopback and from a directory, and by name of a file."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from aiokwire.errors import ConfigurationError, ConnectionFailed
from aiokwire.spark.decode.options import Decoding, Format, Side
from aiokwire.spark.decode.registry import HttpRegistry, UnknownSchema, with_schemas


class RegistryServer(http.server.ThreadingHTTPServer):
    """A registry of a few schemas."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, number: int, **document: object) -> None:
        self.answers[f"/schemas/ids/{number}"] = 200, json.dumps(document).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: RegistryServer

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        status, body = self.server.answers.get(self.path, (404, b'{"error_code":40403}'))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing to stderr."""


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_schema_is_requested_once(registry: RegistryServer) -> None:
    registry.put(7, schema='"string"')
    for _ in range(2):
        assert HttpRegistry(registry.url + "/").schema(7) == '"string"'
    assert registry.asked == [("/schemas/ids/7", None)]


def test_credentials_are_sent_and_never_shown(registry: RegistryServer) -> None:
    registry.answers["/schemas/ids/1"] = 401, b"no entry"
    secured = HttpRegistry(registry.url.replace("//", "//key:p%40ss@"))
    with pytest.raises(ConnectionFailed, match="responds with status 401: no entry") as failure:
        secured.schema(1)
    assert registry.asked == [("/schemas/ids/1", "Basic a2V5OnBAc3M=")]
    assert "p%40ss" not in str(failure.value)


def test_missing_schemas_and_schemas_of_other_formats_are_unknown(registry: RegistryServer) -> None:
    registry.put(2, schema="message M {}", schemaType="PROTOBUF")
    registry.put(3, schema='"Other"', references=[{"name": "Other", "subject": "o", "version": 1}])
    for number, message in ((1, "has no schema 1"), (2, "PROTOBUF"), (3, "refers to other schemas")):
        with pytest.raises(UnknownSchema, match=message):
            HttpRegistry(registry.url).schema(number)


def test_a_registry_that_does_not_respond_is_an_error(registry: RegistryServer) -> None:
    registry.answers["/schemas/ids/1"] = 200, b"<html>"
    with pytest.raises(ConnectionFailed, match="does not respond"):
        HttpRegistry(registry.url).schema(1)
    registry.put(4, title="no registry")
    with pytest.raises(ConnectionFailed, match="is not a schema registry"):
        HttpRegistry(registry.url).schema(4)
    with pytest.raises(ConnectionFailed, match=r"http://127\.0\.0\.1:1 does not respond"):
        HttpRegistry("http://127.0.0.1:1").schema(1)


def loaded(schema: str, **more: str) -> Side:
    return with_schemas(Decoding(value=Side(Format.AVRO, schema, **more))).value  # type: ignore[arg-type]  # all of them are texts


def test_the_schema_of_the_columns_may_come_from_the_registry(registry: RegistryServer) -> None:
    registry.put(12, schema='"long"')
    assert loaded("12", registry=registry.url).schema == '"long"'
    with pytest.raises(ConfigurationError, match=r"value\.schema: .* has no schema 13"):
        loaded("13", registry=registry.url)


def test_files_are_read_on_the_driver(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text('"string"\n')
    (tmp_path / "old.avsc").write_text('"bytes"')
    found = loaded(f"@{tmp_path}/order.avsc", writer_schema=f"@{tmp_path}/old.avsc")
    assert (found.schema, found.writer_schema) == ('"string"', '"bytes"')
    with pytest.raises(ConfigurationError, match=r"value\.schema: cannot read the file '.*gone\.avsc'"):
        loaded(f"@{tmp_path}/gone.avsc")


def test_a_directory_is_a_registry(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"value\.schema\.registry: .* has no file <id>\.avsc"):
        loaded('"string"', registry=str(tmp_path))
    (tmp_path / "3.avsc").write_text('"string"')
    (tmp_path / "4.json").write_text('"bytes"')
    (tmp_path / "README.md").write_text("no schema")
    assert loaded("3", registry=str(tmp_path)).schemas == {3: '"string"', 4: '"bytes"'}
    assert loaded("3", registry=str(tmp_path)).schema == '"string"'
    with pytest.raises(ConfigurationError, match="cannot read the schemas"):
        loaded('"string"', registry=str(tmp_path / "gone"))
