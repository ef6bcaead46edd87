"""Who may include whom: the table of cmake/modules.cmake, the inner rules of rlhf/ and recipe/, and no cycles."""
import functools
import re

from checks.lint import code_of
from checks.tree import CODE, Failure, files, includes, lines, text

MODULE = re.compile(r"^collimate_module\((\w+)([^)]*)\)", re.MULTILINE)
TEST = re.compile(r"_test\.\w+$")
SUPPORT = "tests/support/"  # a folder of it serves the tests of the folder of collimate/ that has its name
RLHF_TYPES = {"base", "tensor", "batch"}
RLHF_STAGE = RLHF_TYPES | {"text", "comm"}
RLHF_STAGES = {"prompt", "rollout", "reward", "advantage", "loss"}
RLHF_ALLOWED = {
    "types": RLHF_TYPES,
    "reward": RLHF_STAGE | {"host"},
    "modules": RLHF_STAGE | {"host", "flow", "model", "generate", "train"},
    **{stage: RLHF_STAGE for stage in RLHF_STAGES - {"reward"}},
}
# recipe/ says what is wired to what: a recipe is a graph, and the executor alone calls modules, services, optimizers,
# rewards and losses. So of the folders that hold them it sees names, options and lists, no more.
RECIPE_PAGE = "graph::trace("
RECIPE_SEES = {
    "train": (),
    # Names of finish reasons; whether a form can be followed, before a run begins.
    "generate": ("sampling.h", "sampling_options.h", "service.h", "forms.h"),
    "model": ("huggingface_check.h", "safetensors.h"),
    "rlhf": ("types/", "prompt/", "reward/", "loss/list.h", "advantage/list.h", "modules/options.h",
             "modules/decoder.h", "modules/advantages.h", "modules/reward.h"),
}
PAGE_SEES = ("collimate/recipe/page.h", "collimate/recipe/evaluation/graphs.h", "collimate/graph/", "collimate/batch/")
REGISTRY = "collimate/recipe/registry.cpp"  # the one list of modules: it makes them for the executor
RECIPE_CALL = re.compile(r"\b(Learner|AdamW|generate_all|with_log_probs|GeneratorModule|TrainerModule|ScorerModule|"
                         r"RewardModule|train_step)\b|\bService\b(?!Options)|(\.|->)(setup|call|submit|score)\(")
# The one exception: before anything runs, `collimate check` asks the rewards that are functions of one sample what they
# give to the data's rows.
REWARD_CHECK, REWARD_CHECK_ASKS = "collimate/recipe/check_rewards.cpp", "spec.reward->score("
# Libraries that only some folders may see.
CONFINED = {"CLI/": {"cli"}, "editline/": {"cli"}, "httplib.h": {"serve", "rlhf"},
            "ATen/": None, "c10/": None, "torch/": None}  # None: modules marked TORCH


@functools.cache
def modules() -> dict:
    """name -> (set of allowed includes, whether it is marked TORCH), in the order of data flow."""
    table = {}
    for name, rest in MODULE.findall(text("cmake/modules.cmake")):
        words = rest.split()
        allowed, reading = set(), False
        for word in words:
            reading = word == "INCLUDES" or (reading and word != "LIBRARIES")
            if reading and word != "INCLUDES":
                allowed.add(word)
        table[name] = (allowed, "TORCH" in words)
    return table


def as_module(path: str) -> str:
    """tests/support/graph/a.h -> collimate/graph/a.h: what serves a folder's tests may include what the folder may."""
    inner = path.removeprefix(SUPPORT)
    return f"collimate/{inner}" if inner != path and inner.split("/")[0] in modules() else path


def module_of(path: str) -> str:
    parts = as_module(path).split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "collimate" else ""


def rlhf_failure(path: str, target: str) -> str:
    """Says what is wrong with a file of rlhf/ including `target`, or ''."""
    path, target = as_module(path), as_module(target)
    part = path.split("/")[2]
    allowed = RLHF_ALLOWED.get(part)
    if allowed is None:
        return f"rlhf/{part} is none of the known parts: {' '.join(sorted(RLHF_ALLOWED))}"
    if module_of(target) != "rlhf":
        outside = module_of(target)
        return "" if outside in allowed else f"rlhf/{part} may not include {outside}/"
    other = target.split("/")[2]
    if other in (part, "types") or part == "modules":
        return ""
    return f"rlhf/{part} may not include rlhf/{other}: stages meet only in rlhf/types"


def recipe_failure(path: str, target: str) -> str:
    """Says what is wrong with a file of recipe/ including `target`, or ''."""
    if path == REGISTRY or path.endswith("_test.cpp"):
        return ""
    if path.endswith(".cpp") and RECIPE_PAGE in text(path) and not target.startswith(PAGE_SEES):
        return ("a recipe's page is a graph: it may include only recipe/page.h, recipe/evaluation/graphs.h, graph/ "
                "and batch/")
    seen = RECIPE_SEES.get(module_of(target))
    if seen is None or target.split("/", 2)[2].startswith(seen):
        return ""
    return f"recipe/ may not include {target}: a recipe is a graph, the executor calls modules, services and losses"


def calls_in(path: str, its_lines) -> list:
    """Lines of a file of recipe/ that call or hold what only the executor may."""
    allowed = REWARD_CHECK_ASKS if path == REWARD_CHECK else ""
    codes = (code_of(line).replace(allowed, "") if allowed else code_of(line) for line in its_lines)
    return [Failure(path, number, "recipe/ calls no module, service, optimizer, reward or loss")
            for number, code in enumerate(codes, 1) if RECIPE_CALL.search(code)]


def own_failure(path: str, target: str) -> str:
    module, other = module_of(path), module_of(target)
    if target.startswith("tests/") and not path.startswith("tests/") and not TEST.search(path):
        return "tests alone include tests/"
    if not module or not other:  # tests, bench, the umbrella header
        return ""
    if module not in modules():
        return f"folder {module}/ is missing in cmake/modules.cmake"
    if other != module and other not in modules()[module][0]:
        return f"{module}/ may not include {other}/ (cmake/modules.cmake)"
    inner = {"rlhf": rlhf_failure, "recipe": recipe_failure}.get(module)
    return inner(path, target) if inner else ""


def library_failure(path: str, target: str) -> str:
    module = module_of(path)
    if target == "torch/torch.h":
        return "torch/torch.h costs 18 s; include ATen/core/Tensor.h and what is used"
    for prefix, allowed in CONFINED.items():
        if module and target.startswith(prefix):
            fine = module in allowed if allowed else modules().get(module, ((), False))[1]
            return "" if fine else f"{module}/ may not include {prefix}"
    if path.endswith(".h") and target in ("regex", "iostream"):
        return f"<{target}> in a header"
    if path.endswith(".inc") and "/" in target:
        return "a kernel file sees raw pointers and sizes only, no library"
    return ""


def check_table() -> list:
    failures = []
    for path in files(*CODE):
        known = set(files(".h", ".inc", ".cuh"))
        for number, quote, target in includes(path):
            if quote == "<":
                message = library_failure(path, target)
            elif target not in known:
                message = f'"{target}" is not a header of this project, from its root'
            else:
                message = own_failure(path, target)
            if message:
                failures.append(Failure(path, number, message))
        if module_of(path) == "recipe" and path != REGISTRY and not path.endswith("_test.cpp"):
            failures += calls_in(path, lines(path))
    return failures


def find_cycle(graph: dict) -> list:
    """The nodes of one cycle in {node: [next, ...]}, or []."""
    state, trail = {}, []

    def visit(node) -> list:
        state[node] = "open"
        trail.append(node)
        for following in graph.get(node, ()):
            if state.get(following) == "open":
                return trail[trail.index(following):] + [following]
            if following not in state:
                cycle = visit(following)
                if cycle:
                    return cycle
        state[node] = "done"
        trail.pop()
        return []

    for node in graph:
        if node not in state:
            cycle = visit(node)
            if cycle:
                return cycle
    return []


def check_cycles() -> list:
    headers = files(".h", ".inc", ".cuh")
    graph = {path: [name for _, quote, name in includes(path) if quote == '"' and name != path] for path in headers}
    failures = []
    cycle = find_cycle(graph)
    if cycle:
        failures.append(Failure(cycle[0], 1, "include cycle: " + " -> ".join(cycle)))
    cycle = find_cycle({name: sorted(allowed) for name, (allowed, _) in modules().items()})
    if cycle:
        failures.append(Failure("cmake/modules.cmake", 1, "cycle of folders: " + " -> ".join(cycle)))
    return failures
