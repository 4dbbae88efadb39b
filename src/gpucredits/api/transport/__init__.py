"""What a connection passes before it speaks HTTP: bounds on connections, and TLS."""
