"""What all verbs of `aiokwire spark` share: the session, the end of a job, its progress, its files.

spark_session  Spark's session and its Python      cluster     executors, shuffles, folders
progress       a moving line, and the summary      stopping    SIGINT and SIGTERM end a job cleanly
ranges         what is read, in fixed offsets      filesystem  files, wherever they are
lag            how far queries are behind
"""
