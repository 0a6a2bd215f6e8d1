"""An example for each threshold: what is said, as a function of what is compared with it. One
module for each room of the reporter."""

from . import base, calls, commands, exporters, gpu, late, run, steps, stuck

ROOMS = (base, calls, commands, exporters, gpu, late, run, steps, stuck)
EXAMPLES = {name: example for room in ROOMS for name, example in room.EXAMPLES.items()}
