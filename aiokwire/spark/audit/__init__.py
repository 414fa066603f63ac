"""`audit`: what is in a topic, and what is wrong with it.

audit       the driver                              tasks     offsets to tasks, and the tasks
tally       counts of raw batches                   sketches  summaries that can be merged
duplicates  records that are there twice            against, archived  compared with an archive
cluster     compaction, lag                         report    the result, and what of it is wrong
html, plots, table                                  how it is shown

Each task reads the raw batches of its ranges, since Spark's rows hide what a reader does not see: control records,
records of aborted transactions, and what compaction has left of a batch.
"""
