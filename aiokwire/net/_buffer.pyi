def unfilled(size: int) -> bytearray:
    """A `bytearray` of `size` bytes that are not set: whoever asks writes them all before anybody reads them.

    Memory is taken page by page, as it is written: a hostile length costs none by itself.
    """
