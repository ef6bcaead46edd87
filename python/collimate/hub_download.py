"""Downloads a model for collimate: `python -m collimate.hub_download org/model` by PyPI's huggingface_hub.

Where, from where and as whom is for its environment to say: HF_HOME or HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN. The last
line of stdout is JSON: {} when the model is in the cache, or {"expected", "got", "remedy", "input"} of an error, where
`input` says that another name, token or setting is needed rather than another attempt.

The cache's `refs/main` is written last, so that a model of which a part is there counts as absent; what that part has
is kept and not downloaded again.
"""

import json
import os
import pathlib
import sys

PACKAGE = "huggingface_hub==2.4.0"  # as tools/requirements-test.txt has it
FILES = ["*.json", "*.safetensors", "*.jinja", "merges.txt", "vocab.txt", "tokenizer.model", "tiktoken.model",
         "*.tiktoken", "LICENSE*", "README.md"]


def failure(expected, got, remedy, is_input=True):
    return {"expected": expected, "got": got, "remedy": remedy, "input": is_input}


def download(name, hub):
    """The whole of `main`, under the commit that it names now."""
    commit = hub.HfApi().model_info(name).sha
    directory = pathlib.Path(hub.snapshot_download(name, revision=commit, allow_patterns=FILES))
    reference = directory.parents[1] / "refs" / "main"
    reference.parent.mkdir(exist_ok=True)
    written = reference.with_name("main.partial")
    written.write_text(commit)
    written.rename(reference)


def result(name):
    try:
        import huggingface_hub as hub
        from huggingface_hub import constants, errors
    except ImportError as error:
        return failure(f"PyPI's huggingface_hub for {sys.executable}", str(error),
                       f"{sys.executable} -m pip install {PACKAGE}, or COLLIMATE_PYTHON: a Python that has it")
    endpoint = constants.ENDPOINT
    token = "another HF_TOKEN" if hub.get_token() else "HF_TOKEN"
    try:
        download(name, hub)
        return {}
    except errors.GatedRepoError:
        return failure("access to a gated model", f"none from {endpoint}",
                       f"accepting its terms at {endpoint}/{name}, and {token}: one of the account that did")
    except errors.RepositoryNotFoundError:
        return failure("a model of that name", f"none at {endpoint}",
                       f"the name as its page there has it; for a private model {token}")
    except Exception as error:  # of the network, the disk, the hub
        return failure(f"a download from {endpoint}", f"{type(error).__name__}: {first_line(error)}",
                       "again: what has come is kept", is_input=False)


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0]


def main(name):
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    print(json.dumps(result(name)))


if __name__ == "__main__":
    main(sys.argv[1])
