"""Hooks on the modules of the watched model: how a watch hears that one of them runs.

===================  ==========================================================================
``watch_hook``       a hook that changes nothing, and is not copied with its module
``resting_hooks``    hooks that rest while the attention interface says which module runs
``wrapped_forward``  in place of ``forward``, where a hook would change what the model computes
===================  ==========================================================================

Nothing here is public.
"""
