"""Common parts of all commands: flags, errors, signals, devices, jobs."""
