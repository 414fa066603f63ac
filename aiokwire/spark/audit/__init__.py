"""`audit`: the contents of topics, and their faults.

audit       the driver                              tasks     offsets to tasks, and the tasks
tally       counts of raw batches                   sketches  summaries that can be merged
duplicates  duplicate records                       against, archived  comparison with an archive
report      the result and its findings             html, plots, table its presentation

Each task reads the raw batches of its ranges, because Spark's rows hide control records, records of
aborted transactions, and the gaps that compaction leaves in a batch.
"""
