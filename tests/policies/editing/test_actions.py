"""An action becomes an edit; one that says nothing changes nothing."""

import pytest

from policies.editing.actions import Action
from rewriting import Edit


@pytest.mark.parametrize(
    ("action", "edit"),
    [
        (Action(0, (7, 1), "Hi."), Edit.insert(0, "Hi.")),
        (Action(2, (7, 1), "Hi."), Edit.insert(2, "Hi.")),
        (Action(3, (7, 1), "Hi."), Edit.replace(0, "Hi.")),
        (Action(4, (7, 1), "Hi."), Edit.replace(1, "Hi.")),
        (Action(5), Edit.keep()),
        (Action(1, (3, 1), ""), Edit.keep()),
        (Action(1, (3, 1), " "), Edit.keep()),
    ],
)
def test_an_action_is_an_edit_of_its_span(action: Action, edit: Edit) -> None:
    assert action.edit(2) == edit


def test_a_position_that_the_span_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="position 6 of 6"):
        Action(6, (7,), "Hi").edit(2)
