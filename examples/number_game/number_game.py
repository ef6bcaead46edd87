"""A game in turns: guess a digit. After each guess the environment says whether the secret is higher or lower.

    collimate train examples/number_game/number_game.yaml

Each sample has an object of its own; its row of the data gives the secret as `ground_truth`.
"""


class NumberGame:
    def __init__(self, prompt, ground_truth):
        self.secret = int(ground_truth)

    def step(self, completion):
        guess = completion.strip()
        if len(guess) != 1 or not guess.isdigit():
            return {"reward": -1.0, "done": True}
        if int(guess) == self.secret:
            return {"reward": 1.0, "done": True}
        return {"observation": ">" if int(guess) < self.secret else "<"}
