"""Finds which devices of a published run do what, from the text of its placement, and its layouts."""
import math

from words import MOST_DEVICES, SIDE, NotModelled, has, has_word, match, number, rounded, whole

ROLES = {"policy": "generate", "rollout": "generate", "vllm": "generate", "gen": "generate", "generation": "generate",
         "ppo": "train", "train": "train", "training": "train", "reward": "reward", "ref": "ref", "value": "critic",
         "critic": "critic"}
SIZES = {"tp": r"\bTP ?=? ?([0-9]+)", "pp": r"\bPP ?=? ?([0-9]+)", "ep": r"\bEP ?=? ?([0-9]+)",
         "cp": r"\bCP ?=? ?([0-9]+)", "dp": r"\bDP ?=? ?([0-9]+)"}


def misplaced(run, text):
    return NotModelled(f"placement '{text}' of {run['devices']} devices")


def read_two_sides(run, text):
    """`16 train:16 rollout`, `4 gen:12 train`, `32:32` (training first), `75% inference : 25% training`. Two numbers
    without a word are devices where they come to all of them, and a ratio where they divide them."""
    sides = match(text, rf"(?:^|[^0-9.:/])([0-9]+)(%?) ?({SIDE})? ?(?::|->) ?([0-9]+)%? ?({SIDE})?(?![0-9.]*[ ]?:)")
    if not sides:
        return False
    total, first, second, percent = run["devices"], whole(sides[1]), whole(sides[4]), sides[2] == "%"
    both = first + second
    if first < 1 or second < 1 or (percent and both > 100):
        raise misplaced(run, text)
    if percent:
        first, second = first * (total / 100), second * (total / 100)
    elif has(text, "ratio") or (not (sides[3] or sides[5]) and both < total):
        if total % both:
            raise misplaced(run, text)
        first, second = first * (total / both), second * (total / both)
    elif both > total:
        raise misplaced(run, text)
    if has(sides[5] or "", "train") and not has(sides[3] or "", "train"):
        first, second = second, first
    run.update(sharing="two_sides", train_devices=max(1, rounded(first)), generate_devices=max(1, rounded(second)))
    return True


def read_groups(run, text):
    """`Actor/Critic/Ref/RM GPUs 4/4/2/2 + vLLM` or `4/2/1/1`: what is left generates, or the actor's devices do."""
    sizes = match(text, r"(?:^|[^0-9/])([0-9]+)/([0-9]+)/([0-9]+)/([0-9]+)(?![0-9/])")
    if not sizes:
        return False
    left, places = run["devices"], {}
    for at, role in enumerate(("actor", "critic", "ref", "reward")):
        places[role] = (whole(sizes[at + 1]), at)
        if not 1 <= places[role][0] <= left:
            raise misplaced(run, text)
        left -= places[role][0]
    places["generate"] = (left, 4) if left > 0 else places["actor"]
    run.update(sharing="groups", places=places)
    return True


def read_ratio_of_three(run, text):
    """`vLLM:Actor:Critic = 1:1:1`: the reference model beside the actor, the reward model beside the critic."""
    parts = match(text, r"(?:^|[^0-9.:])([0-9]+) ?: ?([0-9]+) ?: ?([0-9]+)(?![0-9.:])")
    if not parts:
        return False
    sizes = [whole(part) for part in parts.groups()]
    if not has(text, "vLLM:Actor:Critic") or sum(sizes) < 1 or run["devices"] % sum(sizes) or min(sizes) < 1:
        raise misplaced(run, text)
    generate, actor, critic = ((size * run["devices"] // sum(sizes), at) for at, size in enumerate(sizes))
    run.update(sharing="groups", places={"generate": generate, "actor": actor, "critic": critic, "ref": actor,
                                         "reward": critic})
    return True


def form_of(run, text):
    """Sets of roles by the name of a form: 2409.19256 has split and standalone, 2312.11819 interleaving."""
    if has_word(text, "split"):
        return {"actor": (.5, 0), "ref": (.5, 0), "generate": (.5, 0), "critic": (.5, 1), "reward": (.5, 1)}
    if has_word(text, "interleaving") or has_word(text, "interleaved"):
        return {"actor": (1, 0), "critic": (1, 0), "generate": (1, 0), "ref": (.5, 1), "reward": (.5, 2)}
    if not has_word(text, "standalone"):
        return {}
    form = {role: (1 / len(run["models"]), at) for at, role in enumerate(sorted(run["models"]))}
    return {**form, "generate": form["actor"]}


def read_form(run, text):
    places = {role: (math.floor(share * run["devices"] + 1e-9), at) for role, (share, at) in form_of(run, text).items()}
    if any(devices < 1 for devices, _ in places.values()):
        raise misplaced(run, text)
    if places:
        run.update(sharing="groups", places=places)
    return bool(places)


def read_apart(run, text):
    """Training and inference apart, without sizes: halves. Asynchronous with a bound: three to one, AReaL's rule."""
    bounded = has(text, "staleness eta=")
    if not bounded and not has_word(text, "disaggregated") and not has_word(text, "separation"):
        return False
    train = max(1, run["devices"] // (4 if bounded else 2))
    run.update(sharing="two_sides", train_devices=train, generate_devices=max(1, run["devices"] - train))
    return True


def read_staleness(run, system, text):
    if run["sharing"] != "two_sides":
        return
    synchronous = any(has_word(text, word) for word in ("separation", "synchronous", "on policy"))
    ahead = 0 if synchronous else number(system, r"([0-9]{1,3})-step Off", 1)
    ahead = number(text, r"staleness_threshold=([0-9.]+)", ahead)
    ahead = number(text, r"staleness eta=([0-9.]+)", ahead)
    asynchronous = run["backend"] == "areal" or has(text, "fully async") or has(text, "fully_async")
    run.update(staleness=ahead, continuous=ahead > 0 and (ahead > 1 or asynchronous))


def share_in_groups(run):
    """A fourth of the devices each for generation, actor and critic, an eighth each for reference and reward."""
    fourth, eighth = max(1, run["devices"] // 4), max(1, run["devices"] // 8)
    run.update(sharing="groups", places={"generate": (fourth, 0), "actor": (fourth, 1), "critic": (fourth, 2),
                                         "ref": (eighth, 3), "reward": (eighth, 4)})


def read_sharing(run, row):
    placement, text = row["placement"], row["system"] + " " + row["placement"]
    if not (read_groups(run, placement) or read_ratio_of_three(run, placement) or read_two_sides(run, placement)
            or read_form(run, text) or read_apart(run, text)) and has(placement, "separated groups"):
        share_in_groups(run)
    read_staleness(run, row["system"], text)


def count_in(text, pattern):
    found = match(text, pattern)
    if found and whole(found[1]) > MOST_DEVICES:
        raise NotModelled(f"no layout: '{text}'")
    return whole(found[1]) if found else 0


def sizes_in(text):
    """The numbers of a layout in one piece of text; dp of what says its tp too."""
    sizes = {name: count_in(text, pattern) for name, pattern in SIZES.items()}
    if not sizes["tp"]:
        sizes["dp"] = 0
    sizes["devices"] = count_in(text, r"\b([0-9]+) GPUs") or count_in(text, r"\b(?:ref|reward|value) ([0-9]+)\b")
    return {name: size for name, size in sizes.items() if size}


def bracketed(text):
    """`gen[TP,PP]=[4,1] train[TP,CP,EP,PP,VPP]=[2,1,8,1,n/a]`: pipeline and experts stand last but one and two, parts
    of a row second where there are five or more."""
    layouts = {}
    if gen := match(text, r"gen\[TP,PP\]=\[([0-9]+),([0-9]+)\]"):
        layouts["generate"] = {"tp": whole(gen[1]), "pp": whole(gen[2])}
    if train := match(text, r"train\[[^\]]*\]=\[([0-9]+),(?:([0-9]+),(?:[0-9]+,)*)?([0-9]+),([0-9]+),[^,\]]*\]"):
        layouts["train"] = {"tp": whole(train[1]), "pp": whole(train[4]), "ep": whole(train[3]), "cp": whole(train[2])}
    return layouts


def layouts_in(text):
    """By role; "" is of all others."""
    layouts = bracketed(text)
    if layouts:
        return layouts
    for mark in ",()":
        text = text.replace(mark, ";")
    for piece in text.split(";"):
        sizes = sizes_in(piece)
        for role in {role for word, role in ROLES.items() if has_word(piece, word)} or {""}:
            layouts.setdefault(role, {}).update(sizes)
    return layouts


def require_whole_replicas(run, text):
    for role in ("generate", "train", "reward", "ref", "critic"):
        devices = run["devices"]
        if run["sharing"] == "two_sides":
            devices = run["generate_devices" if role == "generate" else "train_devices"]
        elif run["sharing"] == "groups":
            devices = run["places"].get("actor" if role == "train" else role, (devices,))[0]
        tp = run["layouts"].get(role, {}).get("tp") or run["layouts"].get("", {}).get("tp", 0)
        if tp and devices % tp:
            raise NotModelled(f"parallelism '{text}': TP{tp} does not divide the {devices} devices of {role}")
