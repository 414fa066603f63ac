"""The subscriptions and assignments that group members exchange, and the assignors."""
