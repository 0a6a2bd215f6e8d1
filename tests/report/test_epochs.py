"""Waiting in epochs of post, start, complete and wait: planted jobs in which every begin and every
return is known."""

from __future__ import annotations
