"""What group members exchange, and the assignors."""
