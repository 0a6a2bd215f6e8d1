"""An example for each threshold: what is said, as a function of what is compared with it. One
module for each room of the reporter."""

from . import late

EXAMPLES = {**late.EXAMPLES}
