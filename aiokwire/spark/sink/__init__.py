"""`df.write` and `df.writeStream`: rows as records, at least once or exactly once.

writer        the writers that Spark calls         columns          rows as records
writing       a task's rows to the brokers         ledger           which batches were committed
exactly_once  a batch as one transaction           partition_owner  one task for each partition
commit_messages  results of tasks, checked
"""
