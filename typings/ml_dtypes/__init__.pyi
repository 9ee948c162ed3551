# Optional, as torch.
from typing import Any

def __getattr__(name: str) -> Any: ...
