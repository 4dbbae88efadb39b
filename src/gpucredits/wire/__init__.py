"""The shapes of the HTTP API, shared by the server and the client.

Owns: the structs of every request and answer, and their conversion from and to the core.
Must not: import the store or the service, and decide nothing.
"""
