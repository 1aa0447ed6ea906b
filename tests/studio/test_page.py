import re

from clearhead.studio.page import PAGE, script, style_sheet


def test_nothing_of_the_page_comes_from_elsewhere() -> None:
    """No address of another server, no inline script or style: the policy would refuse them."""
    known = "http://www.w3.org/2000/svg"
    for part in (PAGE, script(), style_sheet()):
        found = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"']*", part))
        assert found <= {known}
    assert "<style" not in PAGE and " style=" not in PAGE and "onclick" not in PAGE
    assert "innerHTML" not in script() and "eval(" not in script()


def test_no_name_is_given_twice() -> None:
    """All scripts share one function: a second class or constant of a name would end them all."""
    names = re.findall(r"^(?:class|const|function|let) (\w+)", script(), re.MULTILINE)
    assert len(names) == len(set(names)) and "Studio" in names and "DeepZoom" in names
