"""Nothing of it is for Python: `_accumulator` uses it from compiled code."""
