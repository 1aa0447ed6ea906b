from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.properties import Property
from clearhead.views.page.static import script
from clearhead.views.roles.shown import roles
from tests.shared.planted_roles import shown

HOSTILE = '</script><b>&"]]>'


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def test_names_from_outside_are_escaped_and_nothing_is_fetched() -> None:
    sentences = list(made_sentences(67))
    model = replace(planted_model(sentences), name=HOSTILE)
    previous = Property(
        HOSTILE, lambda s: {q: (q - 1,) for q in range(1, len(s.tokens))}, "tokens", "position"
    )
    found = roles(model, sentences, properties=[previous], interventions=0)
    assert [role.property for role in found.named] == [HOSTILE]
    page, picture = str(found.html()), str(found.svg())
    assert "<b>&" not in page.replace("<b>L", "") and page.count("</script>") == 1
    ElementTree.fromstring(picture)
    tags = Tags()
    tags.feed(page)
    assert not [tag for tag, _ in tags.seen if tag in ("link", "img", "iframe")]
    links = [attrs["href"] for tag, attrs in tags.seen if tag == "a"]
    ids = [attrs["id"] for _, attrs in tags.seen if "id" in attrs]
    assert len(ids) == len(set(ids)) and {f"#{name}" for name in ids} == set(links)
    assert set(links) == {"#map", "#role-L0H0", "#group-65"}
    assert "url(" not in page.replace(script(), "") and "http" not in page.replace(script(), "")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    bundle = shown()._repr_mimebundle_()
    assert bundle["text/plain"] == str(shown())
    tags = Tags()
    tags.feed(bundle["text/html"])
    frame = dict(tags.seen)["iframe"]
    base = '<base href="about:srcdoc">'  # links stay in the frame
    page = frame["srcdoc"]
    assert (
        page is not None
        and base in page
        and page.replace(base, "") == shown().html().replace(script(), "")
    )
    assert "sandbox" in frame and "<svg" not in bundle["text/html"].replace("&lt;svg", "")
    picture = dict(tags.seen)["img"]["src"]  # for notebooks that are not trusted
    assert picture is not None and picture.startswith("data:image/svg+xml;base64,")
    assert shown().head("L0H0")._repr_mimebundle_() == {"text/plain": str(shown().head("L0H0"))}
