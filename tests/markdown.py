"""Markdown tables as tests compare them."""

import re


def squeezed(text):
    """The text with one space where a table is padded with several."""
    return re.sub(r" {2,}", " ", text)
