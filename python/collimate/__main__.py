"""`python -m collimate` is the command `collimate`."""

from collimate.program import main

main()
