"""Training: texts in, a better model out. The order in which to read the modules:

========================================  =======================================================
``run``                                   the public function ``train``: texts in, events out
``plan``, ``settings``, ``sizes``         all values that decide the result of a run
``events``                                what a run reports
``data``                                  from texts to batches
``prepare``, ``tasks``                    a plan becomes a model with its batches
``options``                               options that contradict each other or a run that has begun
``loop``, ``divergence``                  batch, loss, gradient, step; a loss that rises
``objectives``, ``loss``                  what is minimised; documents that share a row; chunks
``optimiser``, ``muon``, ``schedule``     how weights and learning rates change
``initialisation``, ``random_seed``       initial weights, reproducible random numbers
``precision``, ``products``               bfloat16; which of torch's libraries multiplies
``processes``                             the device, several processes, signals
``validation``, ``head_statistics``       the loss on held-out texts; what each head does there
``saving``, ``run_folder``                what a run saves and takes up again; its files
``curve``                                 the losses as a picture
``scale``                                 estimates for large runs
========================================  =======================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.training.divergence import DivergedError as DivergedError
    from clearhead.training.events import Event as Event
    from clearhead.training.events import Finished as Finished
    from clearhead.training.events import Read as Read
    from clearhead.training.events import Sampled as Sampled
    from clearhead.training.events import Saved as Saved
    from clearhead.training.events import Started as Started
    from clearhead.training.events import Stepped as Stepped
    from clearhead.training.events import Stopped as Stopped
    from clearhead.training.events import Validated as Validated
    from clearhead.training.events import Warned as Warned
    from clearhead.training.processes.signals import StopSignals as StopSignals
    from clearhead.training.run import train as train
    from clearhead.training.run_folder.lock import InUseError as InUseError
    from clearhead.training.settings import TrainingSettings as TrainingSettings

_HOMES = {
    "DivergedError": "clearhead.training.divergence",
    "Event": "clearhead.training.events",
    "InUseError": "clearhead.training.run_folder.lock",
    "Finished": "clearhead.training.events",
    "Read": "clearhead.training.events",
    "Sampled": "clearhead.training.events",
    "Saved": "clearhead.training.events",
    "Started": "clearhead.training.events",
    "StopSignals": "clearhead.training.processes.signals",
    "Stopped": "clearhead.training.events",
    "Stepped": "clearhead.training.events",
    "TrainingSettings": "clearhead.training.settings",
    "Warned": "clearhead.training.events",
    "Validated": "clearhead.training.events",
    "train": "clearhead.training.run",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
