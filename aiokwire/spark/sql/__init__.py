"""`sql`: topics as tables.

tables  which topics a query names, and how each is read     plans   what Spark's parser and optimizer know of a query
query   all of it, in order                                  output  rows as a table, JSON lines, CSV or Parquet
"""
