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


def test_two_heads_of_one_text() -> None:
    """Where both sides show the same text of the same model, their heads are compared."""
    heard, look = Heard(), make_look(decoder(), TEXT)
    panes = [Pane("tiny", look=make_look(decoder(), TEXT)) for _ in range(2)]
    send_difference(panes[0], panes[1], job_of(heard), heads=["L0H1", "L1H2"])
    (found,) = heard.of("compared")
    wanted = ch.diff(look.head("L0H1"), look.head("L1H2")).insight
    assert found["alike"] and found["words"][0][2] == wanted.words[0].distance > 0
    cells = [[one.row.text, one.before, one.after] for one in wanted.changes]
    assert [[one[1], *one[3:]] for one in found["cells"]] == cells[:12]
    assert all(left == right for left, right in found["places"]) and found["places"]
    send_difference(panes[0], panes[1], job_of(heard), heads=["all0", "L1"])
    assert heard.of("compared")[-1]["alike"]
    with pytest.raises(InputError, match="L9H9"):
        send_difference(panes[0], panes[1], job_of(heard), heads=["L9H9", "L1H2"])
    other = Pane("tiny", look=make_look(decoder(), TEXT.replace("books", "door")))
    send_difference(panes[0], other, job_of(heard), heads=["L0H1", "L1H2"])
    assert heard.of("compared")[-1]["alike"] is False
