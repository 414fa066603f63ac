"""The entry point of the format `aiokwire`: Spark looks for `DefaultSource` in packages `pyspark_*`.

Loads nothing but PySpark: a failing import here would disable every Python data source.
"""

from aiokwire.spark import AiokwireSource as DefaultSource

__all__ = ["DefaultSource"]
