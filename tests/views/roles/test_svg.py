from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from tests.shared.planted_roles import shown


def test_the_picture_has_a_cell_for_every_head() -> None:
    root = ElementTree.fromstring(shown().svg())
    assert root.tag.endswith("svg")
    boxes = [one for one in root.iter() if one.tag.endswith("rect") and one.get("rx") == "4"]
    assert len(boxes) == 12
