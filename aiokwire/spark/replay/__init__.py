"""`replay`: an archive, or other Parquet, back to a topic.

replay  the driver: rounds of offsets, or one write of other Parquet
plan    the records of a round, and their schedule             tasks   files to records
"""
