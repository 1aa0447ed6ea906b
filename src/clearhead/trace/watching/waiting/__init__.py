"""What waits between two steps of a generation, until many calls can be read or recorded at once.

================  ==========================================================================
``bare_step``     a step that has nothing but other tensors than the steps of its layer before
``inbox``         calls that are put down as they came, and read later
``step_buffer``   steps of a layer, until they can be recorded as one call
``output_check``  steps put together, compared with what the model gave
================  ==========================================================================

Nothing here is public.
"""
