"""The load: HTTP as bytes, nodes that report, connections that admit, seeded orgs, probes."""
