"""What random records look like, for the property tests of the kernel."""

from __future__ import annotations

from hypothesis import strategies as st

from aiokwire.types import Compression
from tests.records.reference import Header, Row

TIMESTAMPS = st.one_of(
    st.integers(-1, 2_000_000_000_000),
    st.integers(1_700_000_000_000, 1_700_000_000_500),
    st.integers(-(1 << 61), 1 << 61),
)
CONTENTS = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=300))
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
HEADERS: st.SearchStrategy[tuple[Header, ...]] = st.lists(
    st.tuples(NAMES, st.one_of(st.none(), st.binary(max_size=20))), max_size=3
).map(tuple)


def rows(*, headers: bool = True, gaps: bool = False) -> st.SearchStrategy[list[Row]]:
    """Records with rising offsets, from 0 without gaps by default."""
    bodies = st.lists(
        st.tuples(
            TIMESTAMPS, CONTENTS, CONTENTS, HEADERS if headers else st.just(()), st.integers(1, 300 if gaps else 1)
        ),
        min_size=1,
        max_size=12,
    )
    return bodies.map(_number)


def _number(bodies: list[tuple[int, bytes | None, bytes | None, tuple[Header, ...], int]]) -> list[Row]:
    numbered, delta = [], -1
    for timestamp, key, value, headers, step in bodies:
        delta += step
        numbered.append(Row(delta, timestamp, key, value, headers))
    return numbered


CODECS = st.sampled_from(list(Compression))


def codecs_of(magic: int) -> list[Compression]:
    return [codec for codec in Compression if magic == 2 or codec is not Compression.ZSTD]
