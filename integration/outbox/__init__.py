"""The transactional outbox on PostgreSQL: relays, database and broker are killed."""
