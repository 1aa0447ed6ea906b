"""The folder of a run: everything in it is validated when it is read.

The order in which to read the modules:

==================  ==========================================================================
``folder``          the folder: what lies where, written atomically
``schema``          from JSON values to dataclasses: every field typed and checked
``checksum``        SHA-256 of files, JSON values and tensors
``record``          run.json: the plan, the model, the checksums of other files
``progress``        where a run is: what a checkpoint says beside its tensors
``checkpoint``      checkpoint files
``log``             log.jsonl
``lock``            one process at a time
==================  ==========================================================================
"""

from clearhead.training.run_folder.folder import RunFolder

__all__ = ["RunFolder"]
