"""draw placeholder."""


def draw(*args: object) -> str:
    """Nothing yet."""
    return ""
