"""A model for llama.cpp's servers, whose prompts are texts: the peers' conversion, but with a vocabulary of one
character a token, as our own model directories have (inputs.py). With the python of the llamacpp peer:

    python server_gguf.py SCRIPTS NAME f32|bf16 OUT.gguf
"""

import pathlib
import runpy
import sys

import gguf

import inputs

NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # llama.cpp's types of tokens


class Writer(gguf.GGUFWriter):
    def add_tokenizer_model(self, model):
        """Instead of "no_vocab"."""
        super().add_tokenizer_model("llama")
        names = ["<s>", "</s>", "<pad>", "<unk>"]
        self.add_token_list(names + inputs.CHARACTERS)
        self.add_token_scores([0.0] * (len(names) + len(inputs.CHARACTERS)))
        self.add_token_types([CONTROL, CONTROL, CONTROL, UNKNOWN] + [NORMAL] * len(inputs.CHARACTERS))
        for add, value in ((self.add_bos_token_id, 0), (self.add_eos_token_id, 1), (self.add_pad_token_id, 2),
                           (self.add_unk_token_id, 3)):
            add(value)
        self.add_add_bos_token(False)
        self.add_add_eos_token(False)
        self.add_add_space_prefix(False)


if __name__ == "__main__":
    scripts, name, kind, out = sys.argv[1:5]
    gguf.GGUFWriter = Writer
    sys.path.insert(0, scripts)
    sys.argv = ["hf2gguf.py", name, kind, out]
    runpy.run_path(str(pathlib.Path(scripts) / "hf2gguf.py"), run_name="__main__")
