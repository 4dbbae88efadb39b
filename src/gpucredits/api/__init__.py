"""The HTTP edge: one table of routes, from which the server and its OpenAPI document are made.

Owns: turning requests into calls of the service and results into answers.
Must not: decide anything about money, and speak no SQL.
"""
