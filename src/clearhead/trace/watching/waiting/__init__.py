"""What waits between two steps of a generation, until many calls can be read or recorded at once.

===============  ==========================================================================
``inbox``        calls that are put down as they came, and read later
``step_buffer``  steps of a layer, until they can be recorded as one call
===============  ==========================================================================

Nothing here is public.
"""
