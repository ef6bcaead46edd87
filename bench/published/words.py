"""Reading the short texts in the columns of a results file."""
import math
import re

MOST_DEVICES = 100000
NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class NotModelled(Exception):
    """Thrown while a row is read, with the reason."""


def has(text, word):
    return word.lower() in text.lower()


def has_word(text, word):
    """Whether the word stands there with no letter on either side."""
    return re.search(rf"(?<![a-z]){re.escape(word.lower())}(?![a-z])", text.lower()) is not None


def match(text, pattern, flags=re.IGNORECASE):
    return re.search(pattern, text, flags | re.ASCII)


def leading(text):
    """The number that a text begins with, or 0."""
    found = NUMBER.match(text)
    return float(found[0]) if found else 0.0


def finite(text):
    """The whole text as a finite number, or nothing."""
    found = NUMBER.fullmatch(text)
    return float(text) if found and math.isfinite(float(text)) else None


def number(text, pattern, fallback):
    """The first group of a match as a number."""
    found = match(text, pattern)
    return leading(found[1]) if found and found[1] else fallback


def whole(text):
    """Digits as a count; MOST_DEVICES + 1 for any that are more."""
    value = finite(text or "") or 0
    return int(value) if 0 <= value <= MOST_DEVICES else MOST_DEVICES + 1


def rounded(value):
    return math.floor(value + 0.5)


# These words may stand in a column, so that nothing else passes for having been read: a run is read from them, or they
# change nothing of it.
SIDE = r"(?:train(?:er|ing)?|gen(?:eration)?|roll ?out|inference|infer)"
KNOWN = {
    "algo": r"\b(?:PPO|GRPO|DAPO|ReMax|RLOO|Safe-?RLHF|step 3|full|LoRA|no critic/ref)\b",
    "gpu_type": r"^[^ (,]+|\([^)]*\)|\b[0-9]+ ?/ ?node\b|\b(?:[0-9]+ ?(?:x|×) ?)?[0-9]+(?:\.[0-9]+)? ?G"
                r"(?:b|bps|bit/s)\b|\b(?:RDMA|RoCE(?:v2)?|IB)\b",
    "batch": r"\bprompts x gens [0-9]+x[0-9]+\b|\b[0-9]+ ?(?:prompts )?x ?[0-9]+\b"
             r"|\b[0-9]+ (?:prompts|requests|samples|minibatches|PPO epochs?)\b|\bmini [0-9]+\b"
             r"|\b[0-9.]+k (?:samples|prompts|rows|pairs)(?:/epoch)?\b|(?:<=)?\b[0-9]+ pairs(?:/step)?\b"
             r"|\b[0-9.]+M tok\b|/step\b|\bsample_per_episode [0-9]+\b|\b(?:train )?GBS [0-9]+\b|^[0-9]+\b",
    "prompt_len": r"^[0-9]+$|\bmax [0-9]+\b",
    "gen_len": r"^[0-9]+(?: ?- ?[0-9]+)?$|\bmax (?:total )?[0-9]+\b|\b(?:avg|mean) [0-9]+\b|\b[0-9]+k context\b"
               r"|^[0-9]+ fixed\b|\bno EOS\b",
    "placement":
        r"\bActor/Critic/Ref/RM GPUs\b|\b[0-9]+(?:/[0-9]+){3}\b|\bvLLM:Actor:Critic = |\b[0-9]+(?: ?: ?[0-9]+){2}\b"
        rf"|\b[0-9]+%? ?(?:{SIDE}\b)? ?(?::|->) ?[0-9]+(?:%|\b) ?(?:{SIDE}\b)?|\bratio\b"
        r"|\b(?:max )?staleness eta=[0-9.]+|\bstaleness_threshold=[0-9.]+"
        r"|\b(?:checkpoint_engine|require_batches)=[0-9]+|\buse_trainer_do_validate\b|\bfully[ _]async\b"
        r"|\bone-step-off\b|\bon policy\b|\bsync(?:hronous)?\b"
        r"|\b(?:all six roles |all )?colocated?\b|\bstandalone\b|\bsplit\b|\binterleav(?:ing|ed)\b|\bseparation\b"
        r"|\bdisaggregated\b|\bseparated groups\b|\bvLLM\b|\bMegatron heuristic\b|\bTP[0-9]+ intra-node\b|\bsearched\b"
        r"|\bMCMC\b|\bhybrid engine\b|\bZeRO(?:-[0-9])?\b|\b(?:Adam|optimizer|RM/ref|param|offload)\b|\bEMS in [0-9.]+",
    "parallelism":
        r"\bgen\[TP,PP\]=\[[0-9]+,[0-9]+\]|\btrain\[[A-Z,]+\]=\[[0-9,]+(?:n/a)?\]|\b(?:TP|PP|EP|CP|DP) ?=? ?[0-9]+\b"
        r"|\b(?:ref|reward|value) [0-9]+(?: GPUs)?\b"
        r"|\b(?:policy|rollout|vLLM|gen|generation|ppo|train|training|reward|ref)\b"
        r"|\b(?:value|critic)\b|\b(?:on )?[0-9]+ GPUs?(?: each|/instance)?\b|\bM?BS[0-9]+\b|\boffload(?: [0-9.]+)?"
        r"|\b(?:Adam|optimizer|hybrid engine|EMS all)\b|\b(?:full )?recompute\b|\bZeRO-[0-9]\b",
}
MARKS = " \t,;:/()+"  # between words


def reject(column, text, rest):
    raise NotModelled(f"{column} '{text}'" + ("" if rest == text else f", of which '{rest}'") + " is not read")


def require_known_words(row):
    for column, words in KNOWN.items():
        rest = re.sub(words, ";", row[column], flags=re.IGNORECASE | re.ASCII).strip(MARKS)
        if rest.strip(" ,;:/()+"):
            reject(column, row[column], rest)
    for column in ("prompt_len", "gen_len"):
        if match(row[column], r"(?:^|[^0-9.])0+(?![0-9.])"):
            reject(column, row[column], row[column])
