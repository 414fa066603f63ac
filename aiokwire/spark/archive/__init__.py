"""`archive`: topics to Parquet, each record once.

archive    the driver: rounds of offsets           tasks     offsets to files
commit     adds a round to the archive             manifest  the files of the archive
layout     directories and names                   compact   merges small files
verify     compares files with manifests
"""
