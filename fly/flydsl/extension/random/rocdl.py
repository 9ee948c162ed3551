"""What AMD's targets have of their own: nothing yet that is faster."""

__all__: list[str] = []
