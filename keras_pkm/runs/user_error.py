"""The exceptions that the commands print instead of a traceback."""


class UserError(Exception):
    """A mistake of the user's.

    The command prints it as one line and exits with code 2. The message names
    the thing, the rule, what was received and the remedy.
    """


class RunError(Exception):
    """What ended a run that had begun, and what to do.

    The command prints it as one line and exits with code 1. What was written
    is intact.
    """
