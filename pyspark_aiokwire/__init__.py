"""Makes Spark find the format `aiokwire`: it looks for a `DefaultSource` in every package named `pyspark_*`.

A failing import here would take every other Python data source away, so that nothing is loaded but PySpark.
"""

from aiokwire.spark import AiokwireSource as DefaultSource

__all__ = ["DefaultSource"]
