"""The processes that end a job where its trust ends, and pay its bill, whoever else dies.

Processes of their own, without the rest of the product: the warden, its child the guardian, and
the settler.
"""
