"""The benchmark: aiokwire and its peers in one run, each client in a process of its own, paired and repeated."""
