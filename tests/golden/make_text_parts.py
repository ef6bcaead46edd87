"""Writes tests/golden/text_parts.json: logits of texts under tiny models that read images too, by transformers.

A language model's weights follow the formula of make_families.py by the names that it has where it stands alone, which
the test repeats; names and sizes of all tensors, and config.json, are as transformers writes them. Without "_old" they
are version 5's; "_old" has the config of Qwen2.5-VL as published, with the language model's keys in the whole.

Made with Python 3.11, torch 2.11.0 and transformers 5.23.0: python tests/golden/make_text_parts.py
"""

import copy
import json
import pathlib
import re
import tempfile

import torch
import transformers
from safetensors import safe_open

import make_families as families

TEXT = {"vocab_size": 23, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "max_position_embeddings": 64}
IMAGES = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16,
          "patch_size": 8}
QWEN_IMAGES = {"depth": 1, "hidden_size": 8, "out_hidden_size": 16, "num_heads": 2, "intermediate_size": 12,
               "patch_size": 8}
ROPE = {"type": "mrope", "mrope_section": [1, 1, 0], "rope_theta": 1e4}
NO_ENDS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
CASES = {  # class without ForConditionalGeneration and Config, and perhaps a word more: options of the config
    "Gemma3": {"text_config": TEXT | NO_ENDS | {"head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8},
               "vision_config": IMAGES, "mm_tokens_per_image": 1, "image_token_index": 20},
    "Mistral3": {"text_config": TEXT | NO_ENDS | {"model_type": "mistral", "head_dim": 4, "sliding_window": None},
                 "vision_config": IMAGES | {"model_type": "pixtral", "head_dim": 4}},
    "Llava": {"text_config": TEXT | NO_ENDS | {"model_type": "llama"}, "image_token_index": 20,
              "vision_config": IMAGES | {"model_type": "clip_vision_model", "projection_dim": 8}},
    "Qwen2VL": {"text_config": TEXT | NO_ENDS | {"rope_scaling": ROPE}, "vision_config": {
        "depth": 1, "embed_dim": 8, "hidden_size": 16, "num_heads": 2, "patch_size": 8}},
    "Qwen2_5_VL": {"text_config": TEXT | NO_ENDS | {"rope_scaling": ROPE}, "vision_config": QWEN_IMAGES},
    "Qwen2_5_VL with yarn": {"text_config": TEXT | NO_ENDS | {"rope_scaling": {
        "type": "yarn", "rope_type": "yarn", "mrope_section": [1, 1, 0], "factor": 4.0, "rope_theta": 1e4,
        "original_max_position_embeddings": 16}}, "vision_config": QWEN_IMAGES},
    "Qwen3VL": {"text_config": TEXT | NO_ENDS | {"head_dim": 4, "rope_scaling": {
        "rope_type": "default", "mrope_section": [1, 1, 0], "mrope_interleaved": True}},
        "vision_config": QWEN_IMAGES | {"deepstack_visual_indexes": []}},
    "InternVL": {"text_config": TEXT | NO_ENDS | {"model_type": "qwen2"}, "vision_config": IMAGES | {
        "image_size": [16, 16], "patch_size": [8, 8]}},
    "Idefics3": {"text_config": TEXT | NO_ENDS | {"model_type": "llama"}, "vision_config": IMAGES, "scale_factor": 1},
    "SmolVLM": {"text_config": TEXT | NO_ENDS | {"model_type": "llama"}, "vision_config": IMAGES, "scale_factor": 1},
}


def name_alone(name):
    """model.layers.0 … of model.language_model.layers.0 …; "" of a tensor of another part."""
    found = re.fullmatch(r"(?:model\.(?:language_model|text_model)\.|language_model\.model\.)(.*)", name)
    if found:
        return "model." + found[1]
    if name.removeprefix("language_model.") == "lm_head.weight":
        return "lm_head.weight"
    return name if re.match(r"model\.(layers|embed_tokens|norm)\.", name) else ""


def model_of(kind, options):
    kind = kind.split()[0]
    config = getattr(transformers, kind + "Config")(**options)
    model = getattr(transformers, kind + "ForConditionalGeneration")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            alone = name_alone(name)
            parameter.copy_(families.weights(alone, parameter) if alone else torch.zeros_like(parameter))
    return model


def published_before(one):
    """The case with the config as it was written when the language model's keys stood in the whole."""
    config = copy.deepcopy(one["config"])
    text = config.pop("text_config")
    rope = {key: value for key, value in text["rope_parameters"].items() if key not in ("rope_type", "rope_theta")}
    config = text | {"rope_scaling": rope, "rope_parameters": None, "rope_theta": 1e4} | config
    return one | {"name": one["name"] + "_old", "config": config}


def case(kind, options):
    model = model_of(kind, options)
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory)
        config = json.loads(pathlib.Path(directory, "config.json").read_text())
        with safe_open(directory + "/model.safetensors", "pt") as file:
            tensors = {key: [name_alone(key), file.get_slice(key).get_shape()] for key in file.keys()}
    with torch.no_grad():
        logits = model(torch.tensor([families.IDS])).logits[0]
    print(f"{kind}: {len(tensors)} tensors")
    return {"name": kind, "config": config, "tensors": tensors, "ids": families.IDS,
            "logits": [round(x, 5) for x in logits.flatten().tolist()]}


if __name__ == "__main__":
    cases = [case(*of) for of in CASES.items()]
    cases += [published_before(one) for one in cases if one["name"].startswith("Qwen2_5_VL")]
    path = pathlib.Path(__file__).parent / "text_parts.json"
    path.write_text(json.dumps(cases, separators=(",", ":")) + "\n")
    print(f"{path}: {len(cases)} cases")
