"""`spark.read` and `spark.readStream`: topics as Arrow batches.

datasource    Spark's entry point                  schema        the columns and their types
batch, stream readers                              driver_state  a stream's state on the driver
planning      offsets to tasks, limits, losses     lookup        the driver's requests
pushdown      a query's filters
scan, fetching, convert                            a task: offsets to Arrow batches
"""
