"""`spark.read` and `spark.readStream`: topics as Arrow batches.

datasource    what Spark calls                     schema      the columns and their types
batch, stream readers                              driver_state  what a stream's driver remembers
planning      offsets to tasks, limits, losses     lookup      the driver's requests to the cluster
pushdown      a query's filters
scan, fetching, convert                            a task: offsets to Arrow batches
"""
