"""Compares teaching methods: what models learn, and what they forget."""
