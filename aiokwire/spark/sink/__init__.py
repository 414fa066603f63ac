"""`df.write` and `df.writeStream`: rows as records, at least once or exactly once.

writer, stream_writer  what Spark calls            sink             the driver's and the tasks' side
writing       a task's rows to the brokers         columns          rows as records
exactly_once  a batch as one transaction           ledger           which batches were committed
commit_messages  results of tasks, checked         partition_owner  one task for each partition
"""
