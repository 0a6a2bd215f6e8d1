"""hvprof-report: merges the files that the ranks of a run left behind and answers questions about them.

The list of layers in docs/ARCHITECTURE.md says what each room, a folder here, holds and which rooms it may use.
"""

__version__ = "0.1.0"  # the Makefile takes it from here
SCHEMA_VERSION = 8
APPLICATION_ID = 0x636D7066  # "cmpf"
