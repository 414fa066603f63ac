"""`sql`: topics as tables.

query   the steps, in order                        plans   a query's tables and columns, from Spark
tables  the topics of a query and their options    output  rows as a table, JSON lines, CSV, Parquet
"""
