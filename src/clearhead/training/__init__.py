"""Training: texts in, a better model out. The order in which to read the modules:

========================================  =======================================================
``run``                                   the public function ``train``: texts in, events out
``plan``, ``settings``, ``sizes``         all values that decide the result of a run
``events``                                what a run reports
``data``                                  from texts to batches
``prepare``, ``task``                     a plan becomes a model with its batches
``loop``                                  batch, loss, gradient, step
``objectives``, ``loss``                  what is minimised; documents that share a row; chunks
``optimiser``, ``muon``, ``schedule``     how weights and learning rates change
``initialisation``, ``random_seed``       initial weights, reproducible random numbers
``precision``, ``processes``              bfloat16, the device, several processes
``validation``                            the loss on held-out texts
``run_folder``, ``checkpoint``            the files of a run
``curve``                                 the losses as a picture
``scale``                                 estimates for large runs
========================================  =======================================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.training.events import Event as Event
    from clearhead.training.events import Finished as Finished
    from clearhead.training.events import Sampled as Sampled
    from clearhead.training.events import Saved as Saved
    from clearhead.training.events import Started as Started
    from clearhead.training.events import Stepped as Stepped
    from clearhead.training.events import Validated as Validated
    from clearhead.training.loop import DivergedError as DivergedError
    from clearhead.training.run import train as train
    from clearhead.training.settings import TrainingSettings as TrainingSettings

_HOMES = {
    "DivergedError": "clearhead.training.loop",
    "Event": "clearhead.training.events",
    "Finished": "clearhead.training.events",
    "Sampled": "clearhead.training.events",
    "Saved": "clearhead.training.events",
    "Started": "clearhead.training.events",
    "Stepped": "clearhead.training.events",
    "TrainingSettings": "clearhead.training.settings",
    "Validated": "clearhead.training.events",
    "train": "clearhead.training.run",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
