"""A simulated fleet against a real server: who asks for which GPUs when, and what goes wrong.

Owns: workloads (made up or read from a published trace), faults, the nodes' side of every lease,
and an oracle that computes each bill from what the nodes know.
Must not: know the server's rules or its database; everything goes through the client.

    workload.py   jobs and tenants, made up from a seed
    traces.py     the same from published traces
    faults.py     what goes wrong with which job
    node.py       one job as its node sees it
    fleet.py      the events of all jobs in the order of time
    oracle.py     what each job must cost
    summary.py    what happened, as tables
"""
