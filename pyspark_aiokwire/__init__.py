"""The entry point of the format `aiokwire`: Spark looks for it in packages named `pyspark_*`.

Loads nothing but PySpark: a failing import here would disable every Python data source.
"""

from aiokwire.spark import AiokwireSource as DefaultSource

__all__ = ["DefaultSource"]
