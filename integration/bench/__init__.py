"""The benchmark: aiokwire and its peers in one run, each client in its own process, paired and repeated."""
