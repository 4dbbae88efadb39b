"""Commands about pools, their queue and their shares."""
