"""The recipe of examples/own_flow, flow and module, in Python: an answer that was often given before is worth less.

    collimate train novelty.yaml --set plugins=examples/python_module.py --set recipe=novelty_in_python
"""
import collimate


@collimate.module("counts_in_python", score=collimate.function(
    needs=["uid", "ids", "reward"], makes=["reward"], each="iteration"))
class Counts:
    def __init__(self, weight: float):
        self.weight, self.seen = weight, {}

    def score(self, rows):
        rewards = []
        for ids, reward in zip(rows["ids"], rows["reward"]):
            before = self.seen.get(answer := " ".join(map(str, ids)), 0)
            self.seen[answer] = before + 1
            rewards.append(reward - self.weight * before)
        return {"reward": rewards, "metrics": {"novelty/answers": len(self.seen)}}

    def save(self):
        return self.seen

    def load(self, state):
        self.seen = state


@collimate.flow(rows="prompts", options={"weight": 0.1})
def novelty_in_python(page, prompts):
    """a policy on prompts with rewards, less for answers that it has often given"""
    policy = page.generator("policy", weights="policy", trained=True)
    trainer = page.trainer("policy_trainer", weights="policy", rows="rollouts", loss="grpo")
    reward, advantages = page.rewards("reward"), page.advantages("groups", default="group")
    counts = page.model("counts", "counts_in_python", weight=page.options["weight"])
    scored = counts("score", reward("score", page.samples(policy, prompts)))
    trainer.train(advantages(scored), **page.updates())
    collimate.link(trainer, policy)
