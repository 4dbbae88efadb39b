"""Meters: what the GPUs of a node do, read from NVML, from DCGM exporter, or made up.

Owns: the shapes of a reading, one module for each source, and the choice between the sources.
Must not: know leases or jobs. A meter reads; the agent decides whose reading it is.
"""
