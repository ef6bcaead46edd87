"""Writes tests/golden/mxfp4.json: what Hugging Face transformers reads from gpt-oss checkpoints of four bits.

"values" are those of transformers of all bytes under three scales, as bits; "logits" are those of a tiny model whose
bytes follow a formula that the test repeats, so that no weights are kept.

Made with Python 3.11, torch 2.15.0 and transformers 5.23.0: python tests/golden/make_mxfp4.py
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

import family_cases
import make_families as families

CONFIG = family_cases.BASE | family_cases.GPT_OSS | {"hidden_size": 32, "intermediate_size": 64, "head_dim": 8}
QUANTIZED = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.embed_tokens"]}


def formula(name, sizes, least, count):
    """Byte i is the least one + (37·i + the sum of the name's bytes) mod the number of them."""
    i = torch.arange(torch.Size(sizes).numel()) * 37 + sum(name.encode())
    return (least + i % count).to(torch.uint8).reshape(sizes)


def files_of():
    stored = {}
    for name, parameter in families.model_of(CONFIG).named_parameters():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            stored[name] = families.weights(name, parameter)
            continue
        experts, columns, rows = parameter.shape
        sizes = [experts, rows, columns // 32]
        stored[name + "_blocks"] = formula(name + "_blocks", sizes + [16], 0, 256)
        stored[name + "_scales"] = formula(name + "_scales", sizes, 122, 4)
    return stored


def logits():
    with tempfile.TemporaryDirectory() as directory:
        save_file(files_of(), directory + "/model.safetensors", metadata={"format": "pt"})
        config = CONFIG | {"quantization_config": QUANTIZED | {"dequantize": True}}
        pathlib.Path(directory, "config.json").write_text(json.dumps(config))
        model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        model.set_experts_implementation("eager")
        of = lambda kind: families.logits_of(model.to(kind), families.IDS)
        single, double = of(torch.float32), of(torch.float64)
        print(f"float32 is {(single - double).abs().max().item():.2g} from float64")
        return double


def values():
    """[3, 512]: every byte's two numbers, by one power of two and then by others."""
    blocks = torch.arange(256).to(torch.uint8).reshape(1, 1, 16, 16).expand(1, 3, 16, 16).contiguous()
    scales = torch.tensor([[127] * 16, [119 + i for i in range(16)], [1 + 16 * i for i in range(16)]])
    read = convert_moe_packed_tensors(blocks, scales.to(torch.uint8).reshape(1, 3, 16), dtype=torch.float32)
    return scales.tolist(), read[0].T.contiguous().view(torch.int32).tolist()


if __name__ == "__main__":
    scales, bits = values()
    golden = {"scales": scales, "values": bits, "config": CONFIG | {"quantization_config": QUANTIZED},
              "ids": families.IDS, "logits": [round(x, 5) for x in logits().flatten().tolist()]}
    path = pathlib.Path(__file__).parent / "mxfp4.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(f"{path}: {path.stat().st_size} bytes")
