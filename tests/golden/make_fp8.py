"""Writes tests/golden/fp8.json: what torch and Hugging Face transformers read from fp8 checkpoints.

"values" are the 256 numbers of torch.float8_e4m3fn, as bits, and "powers" those of torch.float8_e8m0fnu; "tensors" are
dequantized in fp32, as bits; "models" have logits of tiny models. Their bytes and scales follow a formula that the test
repeats, so that no weights are kept.
transformers reads the same files itself, where it can: it knows whole blocks alone.

Made with Python 3.11, torch 2.11.0 and transformers 5.23.0: python tests/golden/make_fp8.py
"""

import json
import pathlib
import tempfile

import torch
import transformers
from safetensors.torch import save_file

import family_cases
import make_families as families

BLOCK = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [8, 8]}
PER_TENSOR = BLOCK | {"activation_scheme": "static", "weight_block_size": None}
CASES = {
    "llama, blocks": (family_cases.BASE | family_cases.LLAMA, BLOCK, torch.float32, "_scale_inv"),
    "qwen3, blocks, bf16 scales": (family_cases.BASE | family_cases.QWEN3, BLOCK, torch.bfloat16, "_scale_inv"),
    "qwen3_moe, blocks": (family_cases.BASE | family_cases.QWEN3_MOE | {"moe_intermediate_size": 16}, BLOCK,
                          torch.float32, "_scale_inv"),
    "llama, blocks that are cut off": (family_cases.BASE | family_cases.LLAMA, BLOCK | {"weight_block_size": [5, 7]},
                                       torch.float32, "_scale_inv"),
    "mistral, one scale": (family_cases.BASE | family_cases.MISTRAL, PER_TENSOR, torch.bfloat16, "_scale_inv"),
    "qwen2, one scale, vLLM's name": (family_cases.BASE | family_cases.QWEN2, PER_TENSOR, torch.float32, "_scale"),
}


def bits(tensor):
    return tensor.float().contiguous().view(torch.int32).flatten().tolist()


def quantized(name, sizes):
    """Byte i is (37·i + the sum of the name's bytes) mod 254, with neither of the two that are no number."""
    i = torch.arange(sizes.numel()) * 37 + sum(name.encode())
    return (i % 254 + (i % 254 >= 127)).to(torch.uint8).view(torch.float8_e4m3fn).reshape(sizes)


def scales(name, sizes, dtype):
    """0.001·(1.5 + sin(0.7311·i + the sum of the name's bytes)), cut off after the bits of bf16 where it is that."""
    i = torch.arange(torch.Size(sizes).numel(), dtype=torch.float64)
    values = (0.001 * (1.5 + torch.sin(0.7311 * i + sum(name.encode())))).float()
    if dtype == torch.bfloat16:
        values = (values.view(torch.int32) & -65536).view(torch.float32)
    return values.reshape(sizes).to(dtype)


def dequantized(weight, scale, block):
    """Each value times its block's scale, in fp32."""
    rows, columns = weight.shape
    block = block or [rows, columns]
    wide = scale.float().reshape(-(-rows // block[0]), -(-columns // block[1]))
    wide = wide.repeat_interleave(block[0], 0)[:rows].repeat_interleave(block[1], 1)[:, :columns]
    return weight.float() * wide


def is_quantized(name):
    """Linear layers of the blocks, but no router."""
    return ".layers." in name and name.endswith("proj.weight")


def files_of(config, quantization, dtype, end):
    """(what lies in the file, the same in fp32 under the names of the file)."""
    stored, plain, block = {}, {}, quantization["weight_block_size"]
    for name, parameter in families.model_of(config).named_parameters():
        for at, piece in families.pieces_in_file(name, parameter, config):
            if not is_quantized(at):
                stored[at] = plain[at] = piece.detach().clone()
                continue
            stored[at] = quantized(at, piece.shape)
            sizes = [-(-n // b) for n, b in zip(piece.shape, block)] if block else []
            stored[at + end] = scales(at, sizes, dtype)
            plain[at] = dequantized(stored[at], stored[at + end], block)
            if block is None:
                stored[at.removesuffix("weight") + ("input_scale" if end == "_scale" else "activation_scale")] = \
                    torch.tensor(0.25)
    return stored, plain


def logits_of(config, tensors, quantization=None):
    """Logits of a directory with these tensors, as transformers reads it."""
    with tempfile.TemporaryDirectory() as directory:
        save_file(tensors, directory + "/model.safetensors", metadata={"format": "pt"})
        section = {"quantization_config": quantization | {"dequantize": True}} if quantization else {}
        pathlib.Path(directory, "config.json").write_text(json.dumps(config | section))
        model = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        with torch.no_grad():
            return model(torch.tensor([families.IDS]), use_cache=False).logits[0]


def model_case(name, config, quantization, dtype, end):
    stored, plain = files_of(config, quantization, dtype, end)
    logits = logits_of(config, plain)
    if end == "_scale_inv" and "cut off" not in name:
        difference = (logits_of(config, stored, quantization) - logits).abs().max().item()
        print(f"{name}: {difference:.2g} from what transformers reads from the fp8 files")
        assert difference < 1e-5, name
    config = config | {"quantization_config": quantization}
    return {"name": name, "config": config, "scales": end, "bf16_scales": dtype == torch.bfloat16,
            "ids": families.IDS, "logits": [round(x, 5) for x in logits.flatten().tolist()]}


def tensor_case(rows, columns, block, dtype):
    weight = quantized(f"{rows}x{columns}", torch.Size([rows, columns]))
    scale = scales("scale", [-(-rows // block[0]), -(-columns // block[1])], dtype)
    return {"sizes": [rows, columns], "block": block, "bytes": weight.view(torch.uint8).flatten().tolist(),
            "scales": bits(scale), "bf16_scales": dtype == torch.bfloat16,
            "values": bits(dequantized(weight, scale, block))}


if __name__ == "__main__":
    golden = {"values": bits(torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn)),
              "powers": bits(torch.arange(256).to(torch.uint8).view(torch.float8_e8m0fnu)),
              "tensors": [tensor_case(5, 9, [2, 4], torch.float32), tensor_case(8, 8, [4, 4], torch.bfloat16),
                          tensor_case(7, 6, [16, 5], torch.float32)],
              "models": [model_case(name, *case) for name, case in CASES.items()]}
    path = pathlib.Path(__file__).parent / "fp8.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    print(f"{path}: {len(golden['models'])} models")
