"""Shared by the verbs of `aiokwire spark`: the session, stopping, progress, files.

spark_session  Spark's session and its Python      cluster     executors, shuffles, folders
progress       the progress line and the summary   stopping    SIGINT and SIGTERM end a job cleanly
ranges         the input, in fixed offsets         filesystem  local files and object stores
lag            the lag of streaming queries
"""
