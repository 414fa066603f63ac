"""`audit`: what is in a topic, and what is wrong with it.

sketches    summaries that can be put together      tally     what is counted of raw batches
task        offsets to tasks, and the tasks         cluster   compaction, lag
duplicates  by Spark                                against   an archive, by checksums
report      the result, and what of it is wrong     html, plots, table   how it is shown
auditor     all of it, in order

Each task reads the raw batches of its ranges, since Spark's rows hide what a reader does not see: control records,
records of aborted transactions, and what compaction has left of a batch.
"""
