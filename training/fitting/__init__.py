"""The optimizer and a fit that resumes, for all commands that train."""
