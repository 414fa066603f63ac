"""The benchmark: aiokwire and its peers, each client in its own process, paired and repeated."""
