"""The checks behind tools/check.py: each is a function from the tree's files to a list of Failures."""
