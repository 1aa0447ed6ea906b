"""The role of each head on a corpus, with evidence: properties, counts, baselines, ablations.

The order in which to read the modules:

=====================================================  ===========================================
``corpus/``                                            sentences with annotation, tokenised
``properties``, ``built_in_properties``                targets for each query; the built-in ones
``property_index``                                     a number for each property that occurred
``door``                                               checks of the arguments
``reader``                                             a model's tokenizer and forward
``prepared``, ``batches``, ``cases``                   sentences as arrays; their cases by the mask
``layer_weights``, ``counting``                        exact weights, and counts of them
``counts/``                                            counts and effects, kept and read again
``processes``                                          several processes, each with its share
``scores``, ``intervals``, ``judging``                 accuracy, baselines, significance, roles
``examples``                                           sentences that show a role
``effect``, ``intervention``                           the effect of ablating a head
``reports``, ``roles``                                 the result; ``find_roles`` runs everything
``planted``                                            a model with known roles, to test all of this
=====================================================  ===========================================
"""

from typing import TYPE_CHECKING

from clearhead.lazy import lazy

if TYPE_CHECKING:
    from clearhead.explain.roles.built_in_properties import BUILT_IN as BUILT_IN
    from clearhead.explain.roles.built_in_properties import given_words as given_words
    from clearhead.explain.roles.effect import Effect as Effect
    from clearhead.explain.roles.examples import Example as Example
    from clearhead.explain.roles.judging import Role as Role
    from clearhead.explain.roles.judging import Rules as Rules
    from clearhead.explain.roles.processes import process_share as process_share
    from clearhead.explain.roles.properties import Property as Property
    from clearhead.explain.roles.properties import PropertyFamily as PropertyFamily
    from clearhead.explain.roles.reports import HeadEvidence as HeadEvidence
    from clearhead.explain.roles.reports import HeadReport as HeadReport
    from clearhead.explain.roles.reports import PropertyReport as PropertyReport
    from clearhead.explain.roles.roles import Roles as Roles
    from clearhead.explain.roles.roles import find_roles as find_roles
    from clearhead.explain.roles.scores import Score as Score

_HOMES = {
    "BUILT_IN": "clearhead.explain.roles.built_in_properties",
    "Effect": "clearhead.explain.roles.effect",
    "Example": "clearhead.explain.roles.examples",
    "HeadEvidence": "clearhead.explain.roles.reports",
    "HeadReport": "clearhead.explain.roles.reports",
    "Property": "clearhead.explain.roles.properties",
    "PropertyFamily": "clearhead.explain.roles.properties",
    "PropertyReport": "clearhead.explain.roles.reports",
    "Role": "clearhead.explain.roles.judging",
    "Roles": "clearhead.explain.roles.roles",
    "Rules": "clearhead.explain.roles.judging",
    "Score": "clearhead.explain.roles.scores",
    "find_roles": "clearhead.explain.roles.roles",
    "given_words": "clearhead.explain.roles.built_in_properties",
    "process_share": "clearhead.explain.roles.processes",
}
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy(__name__, _HOMES)
