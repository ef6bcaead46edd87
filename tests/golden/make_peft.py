"""Writes tests/golden/peft.json: logits of tiny models with PEFT's adapters merged by PEFT; and
tests/golden/peft_text_parts.json: logits of texts under models of make_text_parts.py with adapters of PEFT.

Weights and adapters follow the formula of make_families.py, which the test repeats; adapter_config.json is as PEFT
writes it, and so are the names and sizes of the adapters' tensors.

Made with Python 3.11, torch 2.11.0, transformers 5.23.0 and peft 0.21.2: python tests/golden/make_peft.py

Cases that a file has with the same config stay as they are: another processor gives other last digits. What it lacks
is added.
"""

import json
import pathlib
import tempfile

import peft
import torch
from safetensors import safe_open

import family_cases
import make_families as families
import make_text_parts as text_parts

LLAMA, QWEN2 = family_cases.BASE | family_cases.LLAMA, family_cases.BASE | family_cases.QWEN2
CASES = {
    "listed layers": (LLAMA, {"r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "down_proj"]}),
    "ranks and alphas by pattern": (LLAMA, {
        "r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "k_proj", "down_proj"],
        "rank_pattern": {"down_proj": 2, r"^model\.layers\.0\..*q_proj": 3},
        "alpha_pattern": {r"layers\.1\.self_attn\.(q|k)_proj": 5, "proj": 9}}),
    "rslora, a regular expression": (family_cases.BASE | family_cases.QWEN3, {
        "r": 4, "lora_alpha": 3, "use_rslora": True, "target_modules": r".*\.(q|v|up)_proj"}),
    "layers of one block": (LLAMA, {"r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "up_proj"],
                                    "layers_to_transform": [1], "layers_pattern": "layers"}),
    "all layers but some": (QWEN2, {"r": 3, "lora_alpha": 4, "target_modules": "all-linear",
                                    "exclude_modules": ["k_proj"]}),
    "a head of its own": (QWEN2, {"r": 2, "lora_alpha": 4, "target_modules": ["v_proj"],
                                  "modules_to_save": ["lm_head"]}),
    "an adapted head": (QWEN2, {"r": 2, "lora_alpha": 4, "target_modules": ["o_proj", "lm_head"]}),
    "transposed layers": (family_cases.GPT2, {"r": 4, "lora_alpha": 4, "target_modules": ["c_attn", "c_proj"],
                                 "fan_in_fan_out": True}),
    "interleaved rows": (family_cases.NEOX, {"r": 4, "lora_alpha": 4, "target_modules": ["query_key_value", "dense"]}),
    "rows in pairs": (family_cases.GPTJ, {"r": 4, "lora_alpha": 4, "target_modules": ["q_proj", "k_proj"]}),
    "attention beside experts": (family_cases.BASE | family_cases.QWEN3_MOE, {
        "r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "o_proj"]}),
    "fused experts": (family_cases.BASE | family_cases.QWEN3_MOE, {
        "r": 2, "lora_alpha": 4, "target_modules": [],
        "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]}),
    "one parameter of fused experts, its router and attention": (family_cases.BASE | family_cases.MIXTRAL, {
        "r": 3, "lora_alpha": 4, "target_modules": ["v_proj"],
        "target_parameters": ["mlp.experts.down_proj", "mlp.gate.weight"]}),
    "fused experts of which ranks go by pattern": (family_cases.BASE | family_cases.QWEN2_MOE, {
        "r": 2, "lora_alpha": 4, "target_modules": [], "rank_pattern": {"mlp.experts.down_proj": 3},
        "alpha_pattern": {"experts.gate_up_proj": 5},
        "target_parameters": ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]}),
    "gpt-oss's experts of one block, its router and attention": (family_cases.BASE | family_cases.GPT_OSS, {
        "r": 3, "lora_alpha": 4, "target_modules": ["q_proj", "o_proj"],
        "target_parameters": ["1.mlp.experts.gate_up_proj", "1.mlp.experts.down_proj", "mlp.router.weight"]}),
    "one parameter of gpt-oss's experts": (family_cases.BASE | family_cases.GPT_OSS, {
        "r": 2, "lora_alpha": 4, "target_modules": [], "target_parameters": ["mlp.experts.gate_up_proj"]}),
    "experts of Granite's stacks": (family_cases.BASE | family_cases.GRANITE_MOE, {
        "r": 2, "lora_alpha": 4, "target_modules": ["k_proj"], "alpha_pattern": {"experts.gate_up_proj": 7},
        "target_parameters": ["experts.gate_up_proj", "experts.down_proj", "router.weight"]}),
}


PARTS = {  # by the word that text_parts.json has for them
    "Gemma3": {"r": 2, "lora_alpha": 4, "target_modules": "all-linear"},
    "Qwen2_5_VL": {"r": 3, "lora_alpha": 4, "target_modules": ["q_proj", "down_proj"],
                   "rank_pattern": {r"language_model\.layers\.1\..*q_proj": 2}},
    "Llava": {"r": 2, "lora_alpha": 3, "target_modules": r".*language_model.*\.(q_proj|up_proj)",
              "modules_to_save": ["lm_head"]},
    "Idefics3": {"r": 2, "lora_alpha": 4, "target_modules": r".*text_model.*\.(k_proj|o_proj)"},
}


def name_in_file(name):
    """base_model.model.lm_head.weight of base_model.model.lm_head.modules_to_save.default.weight."""
    return name.replace(".modules_to_save.default.", ".").replace(".default.", ".")


def adapted(model, options):
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **options)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".default." in name:
                parameter.copy_(families.weights(name_in_file(name), parameter) / 2)
    return model


def numbers(name, model):
    """The adapters' config, names and sizes as PEFT writes them, and the logits of the merged model."""
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory, save_embedding_layers=False)
        written = json.loads(pathlib.Path(directory, "adapter_config.json").read_text())
        with safe_open(directory + "/adapter_model.safetensors", "pt") as file:
            tensors = {key: file.get_slice(key).get_shape() for key in file.keys()}
    ids = torch.tensor([families.IDS])
    with torch.no_grad():
        beside = model(input_ids=ids, use_cache=False).logits[0]
        merged = model.merge_and_unload()(input_ids=ids, use_cache=False).logits[0]
    print(f"{name}: {len(tensors)} tensors, merging changes {(beside - merged).abs().max().item():.2g}")
    return {"adapter_config": written, "tensors": tensors, "ids": families.IDS,
            "logits": [round(x, 5) for x in merged.flatten().tolist()]}


def case(name, config, options):
    return {"name": name, "config": config} | numbers(name, adapted(families.model_of(config), options))


def part_case(name, options):
    model = text_parts.model_of(name, text_parts.CASES[name])
    return {"name": name, "options": options} | numbers(name, adapted(model, options))


def write(file, names, key, made):
    """The cases of `names`: those that the file has with an equal `key` first, the rest by `made`."""
    path = pathlib.Path(__file__).parent / file
    kept = {one["name"]: one for one in json.loads(path.read_text())} if path.exists() else {}
    cases = [kept[name] if name in kept and kept[name][key] == of else made(name) for name, of in names.items()]
    path.write_text(json.dumps(cases, separators=(",", ":"), sort_keys=False) + "\n")
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    write("peft.json", {name: of[0] for name, of in CASES.items()}, "config", lambda name: case(name, *CASES[name]))
    write("peft_text_parts.json", PARTS, "options", lambda name: part_case(name, PARTS[name]))
