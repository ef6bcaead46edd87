"""REINFORCE (Williams 1992) as a loss in Python: no ratio, no clipping. It needs PyTorch in the Python that runs it.

    collimate train grpo.yaml --plugin examples/python_loss.py --set algorithm.loss_type=reinforce_in_python
"""
import collimate


@collimate.loss(rows="rollouts", columns=["advantages"])
def reinforce_in_python(c):
    c.mean("reinforce/log_prob", c.log_probs)
    return (c.column("advantages") * c.log_probs).sum() / -c.global_tokens
