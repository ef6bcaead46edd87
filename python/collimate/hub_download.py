"""Downloads a model for collimate: `python -m collimate.hub_download org/model REVISION` by PyPI's huggingface_hub.

Where, from where and as whom is for its environment to say: HF_HOME or HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN. The last
line of stdout is JSON: {} when the model is in the cache, or {"expected", "got", "remedy", "input"} of an error, where
`input` says that another name, token or setting is needed rather than another attempt.

A commit of which a part is there counts as absent, as `unfinished/COMMIT` in the model's folder of the cache says until
all has come; what that part has is kept and not downloaded again. The file of a branch or tag, as `refs/main`, is
written last.
"""

import json
import os
import pathlib
import sys

PACKAGE = "huggingface_hub==2.4.0"  # as tools/requirements-test.txt has it
FILES = ["*.json", "*.safetensors", "*.jinja", "merges.txt", "vocab.txt", "tokenizer.model", "tiktoken.model",
         "*.tiktoken", "*.py", "LICENSE*", "README.md"]  # Python is kept for others, and never run
OTHER_FORMS = ["original/*", "metal/*", "onnx/*", "openvino/*"]  # of the same weights; `*` in FILES takes folders too


def failure(expected, got, remedy, is_input=True):
    return {"expected": expected, "got": got, "remedy": remedy, "input": is_input}


def download(name, revision, hub):
    """The whole of a revision, under the commit that it names now."""
    from huggingface_hub.file_download import repo_folder_name
    commit = hub.HfApi().model_info(name, revision=revision).sha
    folder = pathlib.Path(hub.constants.HF_HUB_CACHE) / repo_folder_name(repo_id=name, repo_type="model")
    mark = folder / "unfinished" / commit
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    hub.snapshot_download(name, revision=commit, allow_patterns=FILES, ignore_patterns=OTHER_FORMS)
    mark.unlink(missing_ok=True)
    if not commit.startswith(revision):
        refer(folder / "refs" / revision, commit)


def refer(reference, commit):
    reference.parent.mkdir(parents=True, exist_ok=True)
    written = reference.with_name(reference.name + ".partial")
    written.write_text(commit)
    written.rename(reference)


def result(name, revision):
    try:
        import huggingface_hub as hub
        from huggingface_hub import constants, errors
    except ImportError as error:
        return failure(f"PyPI's huggingface_hub for {sys.executable}", str(error),
                       f"{sys.executable} -m pip install {PACKAGE}, or COLLIMATE_PYTHON: a Python that has it")
    endpoint = constants.ENDPOINT
    token = "another HF_TOKEN" if hub.get_token() else "HF_TOKEN"
    try:
        download(name, revision, hub)
        return {}
    except errors.GatedRepoError:
        return failure("access to a gated model", f"none from {endpoint}",
                       f"accepting its terms at {endpoint}/{name}, and {token}: one of the account that did")
    except errors.RepositoryNotFoundError:
        return failure("a model of that name", f"none at {endpoint}",
                       f"the name as its page there has it; for a private model {token}")
    except errors.RevisionNotFoundError:
        return failure("a revision of that model", f"no {revision} at {endpoint}",
                       "a branch, tag or commit as its page there has it")
    except Exception as error:  # of the network, the disk, the hub
        return failure(f"a download from {endpoint}", f"{type(error).__name__}: {first_line(error)}",
                       "again: what has come is kept", is_input=False)


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0]


def main(name, revision):
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    print(json.dumps(result(name, revision)))


if __name__ == "__main__":
    main(*sys.argv[1:])
