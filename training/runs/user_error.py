"""The exceptions that the commands print instead of a traceback."""


class UserError(Exception):
    """A mistake of the user.

    The command prints it as one line and exits with code 2. The message names
    the thing, the rule, what was received and the remedy.
    """


class RunError(Exception):
    """The reason why a run ended early, and the remedy.

    The command prints it as one line and exits with code 1. The files written
    so far are intact.
    """
