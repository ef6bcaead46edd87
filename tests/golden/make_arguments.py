"""Writes tests/golden/arguments.json: values as a model writes them between tags, schemas of their parameters, and the
JSON that vLLM reads (extract_types_from_schema and coerce_to_schema_type of vllm/tool_parsers/utils.py).

Made with vLLM 0.32.0: python tests/golden/make_arguments.py
Left out are numbers that Python reads and JSON has not (05, +5, 1_000), and None of Python, which is a text to vLLM.
"""
import json
import pathlib

from vllm.tool_parsers.utils import coerce_to_schema_type, extract_types_from_schema

SCHEMAS = [
    None, {}, {"description": "any"}, {"type": []}, {"enum": []},
    *({"type": type} for type in ("string", "integer", "number", "boolean", "null", "object", "array", "any")),
    *({"type": types} for types in (["integer", "null"], ["string", "null"], ["string", "integer"],
                                    ["number", "boolean"], ["object", "string"], ["boolean", "string"])),
    *({"enum": values} for values in ([1, 2], ["a", None], [1.5], [True], [[1]], [{}])),
    {"type": "string", "enum": ["5"]},
    *({key: [{"type": "integer"}, {"type": "null"}]} for key in ("anyOf", "oneOf", "allOf")),
    {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    {"anyOf": [{"anyOf": [{"type": "boolean"}]}, {"enum": [1]}]},
    {"allOf": [{"type": "integer"}, {"description": "n"}]},
    {"$ref": "#/$defs/X"},
]
VALUES = ["5", " 5 ", "-7", "0", "1", "1.0", "0.10", "1e3", "12345678901234567890123", "null", "Null", "true", "True",
          "FALSE", "x", "", '"x"', '{"a": [1, 2]}', "[1, null]", '{"a": True}', "NaN", "two words", "é\n"]

cases = [[schema, value, coerce_to_schema_type(value, extract_types_from_schema(schema))]
         for schema in SCHEMAS for value in VALUES]
text = "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n"
pathlib.Path(__file__).with_name("arguments.json").write_text(text)
