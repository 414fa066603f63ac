"""The applications of docs/examples as processes: load over HTTP, restarts and kills, then a check."""
