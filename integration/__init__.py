"""Tests with several brokers and other clients, and the benchmarks."""
