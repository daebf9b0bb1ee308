"""The one exception that a command shows as a single line instead of a traceback."""


class UserError(Exception):
    """A user's mistake or circumstance. The message says what is wrong, where, and what to do."""
