"""What all verbs of `aiokwire spark` share: the session, the end of a job, its progress, its files.

spark_session  Spark's session, the driver's requests  interpreters  which Python Spark starts
cluster        executors, shuffles, folders            stopping      SIGINT and SIGTERM end a job cleanly
progress       a moving line, and the summary          watching      tasks of Spark as progress
ranges         what is read, in fixed offsets          filesystem    files, wherever they are
lag            how far queries are behind
"""
