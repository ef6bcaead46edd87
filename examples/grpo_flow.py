"""GRPO as a flow in Python: it traces to the same graph as the recipe grpo, and trains to the same bits.

    collimate train grpo.yaml --plugin examples/grpo_flow.py --set recipe=my_grpo
"""
import collimate


@collimate.flow(rows="prompts")
def my_grpo(page, prompts):
    """a policy on prompts with rewards, by a flow that is written in Python"""
    policy = page.generator("policy", weights="policy", trained=True)
    trainer = page.trainer("policy_trainer", weights="policy", rows="rollouts", loss="grpo")
    reward = page.rewards("reward")
    mixed = page.mixed_groups()  # where rollout.replace_equal_groups asks for it
    advantages = page.advantages("groups", default="group")

    samples = page.samples(policy, prompts)
    scored = reward("score", samples)
    if mixed:
        scored = mixed("keep", scored)
    if page.reads_reference():  # a KL in the loss or in the rewards
        reference = page.scorer("reference", of="reference", weights="reference")
        read = reference("log_probs", scored if mixed else samples)
        scored = read if mixed else collimate.merge(scored, read)
    trainer.train(advantages(scored), **page.updates())
    collimate.link(trainer, policy)
