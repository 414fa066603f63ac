"""The applications of docs/examples as processes: loaded over HTTP, restarted, killed, checked."""
