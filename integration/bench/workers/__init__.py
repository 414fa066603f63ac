"""The worker compared with other ways to call a handler for each record."""
