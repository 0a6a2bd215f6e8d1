"""An example for each threshold: what is said, as a function of what is compared with it. One
module for each room of the reporter."""

from importlib import import_module
from pathlib import Path

ROOMS = [
    import_module(f"{__name__}.{file.stem}")
    for file in sorted(Path(__file__).parent.glob("*.py"))
    if file.stem not in ("__init__", "stored")
]
EXAMPLES = {name: example for room in ROOMS for name, example in room.EXAMPLES.items()}
