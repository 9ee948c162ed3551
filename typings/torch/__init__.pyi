# torch is optional, and `make check` does not install it. Its own types are not used where it is
# installed either, so that both find the same errors.
from typing import Any

def __getattr__(name: str) -> Any: ...
