"""What the commands share: text files, and errors about flags."""
