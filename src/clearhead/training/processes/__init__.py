"""The processes of one run, and the signals that they get. The order in which to read the modules:

==================  ==========================================================================
``group``           rank, number and communication; the device
``presence``        which other process has ended
``signals``         SIGINT and SIGTERM as a wish to stop after the step
==================  ==========================================================================
"""

from clearhead.training.processes.group import (
    ALONE,
    LostProcessError,
    Processes,
    device_of,
    is_first_process,
    together,
)
from clearhead.training.processes.signals import StopSignals

__all__ = [
    "ALONE",
    "LostProcessError",
    "Processes",
    "StopSignals",
    "device_of",
    "is_first_process",
    "together",
]
