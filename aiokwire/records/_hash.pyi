from typing_extensions import Buffer

def murmur2(data: Buffer) -> int:
    """Java's murmur2 of `data`, signed; the partitioner masks the sign away."""

def xxh32(data: Buffer) -> int:
    """XXH32 with seed 0: the second byte of it guards an LZ4 frame's header."""
