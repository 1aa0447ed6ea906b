import pytest

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.make_look import make_look
from clearhead.studio.comparing import send_difference
from clearhead.studio.looking import Pane
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Heard, job_of


def test_the_difference_is_that_of_diff() -> None:
    other, heard = TEXT.replace("books", "door"), Heard()
    panes = [Pane("tiny", look=make_look(decoder(), text)) for text in (TEXT, other)]
    send_difference(panes[0], panes[1], job_of(heard))
    (found,) = heard.of("compared")
    wanted = ch.diff(ch.look(decoder(), TEXT), ch.look(decoder(), other)).insight
    assert [one[2] for one in found["heads"]] == [one.distance for one in wanted.heads[:12]]
    assert [one[3] for one in found["words"]] == [one.head for one in wanted.words[:12]]
    assert (found["gone"], found["new"]) == (list(wanted.gone), list(wanted.new))
    with pytest.raises(InputError, match="no two looks"):
        send_difference(panes[0], Pane(), job_of(heard))
