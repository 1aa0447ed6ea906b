import pytest

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.make_look import make_look
from clearhead.studio.looking import Pane
from clearhead.studio.saving import file_of, send_file
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Heard, job_of


def test_files_are_those_of_the_look_with_what_is_chosen() -> None:
    pane = Pane("tiny", look=make_look(decoder(), TEXT))
    look = ch.look(decoder(), TEXT, head="L1H2", word=3)
    for format, wanted in (("csv", look.csv()), ("json", look.json()), ("svg", look.svg())):
        assert file_of(pane, "look", format, "L1H2", 3).decode() == wanted
    whole = ch.look(decoder(), TEXT, word=3)
    assert file_of(pane, "head", "csv", "all0", 3).decode() == whole.head("all").csv()


@pytest.mark.parametrize(
    ("what", "format", "words"),
    [("look", "exe", "one of"), ("why", "svg", "explained"), ("look", "svg", "nothing is shown"),
     ("disk", "svg", "nothing is shown")],
)  # fmt: skip
def test_what_cannot_be_saved(what: str, format: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        send_file(Pane(), job_of(Heard()), what=what, format=format, head=None, word=None)
