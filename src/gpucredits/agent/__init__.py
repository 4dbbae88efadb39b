"""Nodes: running a command under a lease, and the agent that looks after all jobs of a node.

Owns: processes of jobs, what they used by the node's clock, and reporting it.
Must not: decide about money, or see the server or the database: it is a user of the client.

A launcher (``run``) or the agent admits a job and reports for it. A guardian, one small process for
each job, is the parent of the job: it enforces the last known deadline whoever else dies.
"""
