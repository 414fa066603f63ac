"""Nothing for Python: `Runs` is used by compiled code."""
