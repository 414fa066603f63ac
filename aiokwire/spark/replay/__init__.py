"""`replay`: an archive, or other Parquet, back to a topic.

replay  the driver: rounds of offsets              plan    what a round sends, and when
tasks   files to records                           frames  Parquet without an archive's manifests
"""
