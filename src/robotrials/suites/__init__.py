"""Benchmark suites: what to train on, what to evaluate on, and the round from one to the other."""
