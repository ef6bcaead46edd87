"""Log-probs of given sequences by Hugging Face: forward, log-softmax, gather. With the python of the trl peer:

    python scoring_hf.py MODEL_DIRECTORY fp32|bf16 REPEATS OUT.jsonl ROWS.jsonl VALUES.f32 [ROWS VALUES …]

ROWS: a line {"ids": […], "given": G} per row, all of one length and one G: the log-probs of ids[G:] are wanted, which
VALUES holds afterwards, row after row. The weights are of the dtype, the log-softmax is in fp32. The rows of a forward
are those with which the first file is fastest.
"""

import json
import resource
import sys
import time

import torch
import transformers

MICRO = (2, 8, 16)  # rows of one forward that are tried


def read(path):
    rows = [json.loads(line) for line in open(path)]
    return torch.tensor([row["ids"] for row in rows]), rows[0]["given"]


@torch.inference_mode()
def log_probs(model, ids, given, micro):
    parts = []
    for part in ids.split(micro):
        logits = model(input_ids=part, use_cache=False, logits_to_keep=part.shape[1] - given + 1).logits
        every = torch.log_softmax(logits[:, :-1].float(), -1)
        parts.append(every.gather(-1, part[:, given:, None]).squeeze(-1))
    return torch.cat(parts)


def timed(*work):
    begin = time.perf_counter()
    values = log_probs(*work)
    return time.perf_counter() - begin, values


def main(directory, dtype, repeats, out, files):
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(2)
    kind = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=kind).eval()
    ids, given = read(files[0])
    log_probs(model, ids[:MICRO[0]], given, MICRO[0])  # warm-up
    micro = min(MICRO, key=lambda m: timed(model, ids, given, m)[0])
    with open(out, "w") as lines:
        for rows, values in zip(files[::2], files[1::2]):
            ids, given = read(rows)
            taken = [timed(model, ids, given, micro) for _ in range(repeats)]
            with open(values, "wb") as file:
                file.write(taken[-1][1].float().contiguous().numpy().tobytes())
            line = {"rows": rows, "s_min": min(seconds for seconds, _ in taken), "tokens": ids.numel(), "micro": micro,
                    "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                    "version": f"transformers {transformers.__version__} torch {torch.__version__}"}
            lines.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], sys.argv[5:])
