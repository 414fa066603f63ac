def unfilled(size: int) -> bytearray:
    """Return a `bytearray` of `size` uninitialized bytes: the caller must write all before any is read.

    Memory is allocated page by page, as it is written: a hostile length by itself costs none.
    """
