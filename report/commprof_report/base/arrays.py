"""numpy, imported when it is first used: what only prints starts without it, and who lacks it is
told so in a line.

    from ..base.arrays import np
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import ReportError

if TYPE_CHECKING:
    import numpy as np
else:

    class Deferred:
        def __getattr__(self, name: str) -> Any:
            try:
                import numpy
            except ImportError:
                how = "the package python3-numpy, or pip install numpy"
                raise ReportError(
                    "numpy", f"this needs it, and this Python does not have it: {how}"
                ) from None
            vars(self).update(vars(numpy))
            return getattr(numpy, name)

    np = Deferred()
