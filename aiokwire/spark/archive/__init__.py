"""`archive`: topics to Parquet, each record once.

archive    the driver: rounds of offsets           tasks     offsets to files
commit     a round becomes part of the archive     manifest  which files are part of it
layout     directories and names                   compact   small files put together
verify     files compared with manifests
"""
