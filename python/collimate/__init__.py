"""Collimate's Python side: rewards and, where a user writes Python, modules."""
