"""The exactly-once sink under kills: its own protocol in processes of the shape that Spark gives it."""
