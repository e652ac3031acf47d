"""Recipes are made of groups."""

import dataclasses

import pytest
import tyro

from training.commands.recipe_groups import recipe


@recipe
class Group:
    """A group.

    Attributes:
        shared: Help of the group.
    """

    shared: int = 1


@recipe
class Command(Group):
    """A command."""

    # Help of the command.
    own: str
    shared: int = 2


@recipe
class Other(Group):
    own: str


def test_own_fields_come_first():
    assert [field.name for field in dataclasses.fields(Other)] == [
        "own",
        "shared",
    ]
    assert dataclasses.asdict(Other(own="a")) == {"own": "a", "shared": 1}
    assert dataclasses.replace(Other(own="a"), shared=3).shared == 3


def test_help_of_a_group_stays_where_the_default_is_another(capsys):
    assert Command(own="a").shared == 2
    with pytest.raises(SystemExit):
        tyro.cli(Command, args=["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Help of the group. (default: 2)" in shown
    assert "Help of the command. (required)" in shown
