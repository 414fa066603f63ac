"""The transactional outbox on PostgreSQL: relays as processes that are killed, with database and broker."""
