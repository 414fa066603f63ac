"""Assignors with aiokafka's interface. The strategies are ours, which agree with Java's."""
