"""What all commands share: flags, errors, signals, devices, jobs."""
