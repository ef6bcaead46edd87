"""Writes tests/golden/constraints.json: which tokens may follow under regular expressions, by Python's re, and which
JSON texts schemas allow, by jsonschema.

A token may follow a text if both together begin a text that the expression matches as a whole. All texts of up to
LENGTH letters are matched, which is more than the shown ones and a token need to go on. Documents are written as a
generator writes them: properties in the order of the schema, no blanks.

Made with jsonschema 4.26.0: python tests/golden/make_constraints.py
"""
import itertools
import json
import pathlib
import random
import re

import jsonschema

ALPHABET = "ab1-"
PIECES = ["a", "b", "1", "-", "ab", "ba", "a1", "1-", "-a", "bb", "11", "aba", "a-b", "1b1"]
LENGTH, SHOWN = 8, 3  # letters of matched texts and of the shown ones
EXPRESSIONS = ["a", "ab*", "(ab|ba)+", "a{2,4}1?", "[^a]+", "(a|b1)*-", "-?[1-9][ab]*", "(?:a-){1,2}b|1",
               r"\d+[-a]*", ".*b.", "(a?b?1?){2}", "a|ab|aba", r"(?:\w-)*1", "[a-b]{3}", "(?:(a|ab)(b|ba))*",
               "b(?:1b)*"]


def random_expression(rng, depth=3):
    kind = rng.randrange(7 if depth > 0 else 2)
    inner = lambda: random_expression(rng, depth - 1)
    if kind <= 1:
        return rng.choice(["a", "b", "1", "-", "[ab]", "[^1]", r"\d", "."])
    if kind == 2:
        return inner() + inner()
    if kind == 3:
        return f"(?:{inner()}|{inner()})"
    if kind == 4:
        return f"(?:{inner()})" + rng.choice(["?", "*", "+", "{2}", "{0,2}", "{1,3}"])
    return inner() + inner() + inner()


def expression_case(source):
    compiled = re.compile(source)
    whole = {text for n in range(LENGTH + 1) for text in map("".join, itertools.product(ALPHABET, repeat=n))
             if compiled.fullmatch(text)}
    begun = {text[:n] for text in whole for n in range(len(text) + 1)}
    shown = []
    for count in range(SHOWN + 1):
        for pieces in itertools.product(range(len(PIECES)), repeat=count):
            text = "".join(PIECES[piece] for piece in pieces)
            if len(text) <= SHOWN and text in begun:
                allowed = [i for i, piece in enumerate(PIECES) if text + piece in begun]
                shown.append({"pieces": pieces, "allowed": allowed, "end": text in whole})
    return {"regex": source, "texts": shown[:60]}


def random_schema(rng, depth=2):
    kind = rng.randrange(9 if depth > 0 else 5)
    if kind == 0:
        low = rng.randint(-30, 30)
        return {"type": "integer", "minimum": low, "maximum": low + rng.randint(0, 200)}
    if kind == 1:
        low = rng.randint(0, 2)
        return {"type": "string", "minLength": low, "maxLength": low + rng.randint(0, 3)}
    if kind == 2:
        return rng.choice([{"enum": ["a", 1, None, True, [2], "é\"\\"]}, {"const": {"k": [1, "x"]}},
                           {"type": "boolean"}, {"type": ["null", "integer"]},
                           {"type": "number", "minimum": 0.5, "exclusiveMaximum": 7.25}])
    if kind == 3:
        return {"type": "string", "pattern": rng.choice(["^[a-c]+$", "x", "^\\d{3}-\\d{2}$", "^(ab|\"q\")*$"])}
    if kind == 4:
        return {"type": "string", "format": rng.choice(["date", "uuid", "ipv4"])}
    if kind in (5, 6):
        names = rng.sample(["a", "b", "c", "d"], rng.randint(1, 4))
        schema = {"type": "object", "properties": {name: random_schema(rng, depth - 1) for name in names}}
        schema["required"] = [name for name in names if rng.random() < 0.6]
        schema["additionalProperties"] = rng.choice([False, False, {"type": "integer"}])
        return schema
    if kind == 7:
        low = rng.randint(0, 2)
        return {"type": "array", "items": random_schema(rng, depth - 1), "minItems": low,
                "maxItems": low + rng.randint(0, 2)}
    return {"anyOf": [random_schema(rng, depth - 1) for _ in range(2)]}


RECURSIVE = [{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
                 "value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
                 "required": ["value"], "additionalProperties": False}}},
             {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]}]
VALUES = [0, 1, -7, 25, 130, 0.75, 7.5, "", "a", "abc", "x", "é", "ab\"q\"", "123-45", "2024-02-29", "10.0.0.255",
          "123e4567-e89b-12d3-a456-426614174000", None, True, False, [], {}, [2], {"k": [1, "x"]}, "é\"\\"]


def a_document(rng, schema, root, good):
    """A document that mostly fits; the validator says whether it does."""
    if "$ref" in schema:
        return a_document(rng, root if schema["$ref"] == "#" else root["$defs"]["tree"], root, good)
    if rng.random() > good:
        return rng.choice(VALUES)
    if "anyOf" in schema:
        return a_document(rng, rng.choice(schema["anyOf"]), root, good)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    kind = schema["type"]
    if kind == "object":
        document = {}
        for name, inner in schema["properties"].items():
            if rng.random() < (0.95 if name in schema.get("required", []) else 0.5) * good + 0.03:
                document[name] = a_document(rng, inner, root, good)
        if rng.random() < 0.2:
            document["other"] = rng.choice([3, "x"])
        return document
    if kind == "array":
        count = rng.randint(max(0, schema.get("minItems", 0) - (rng.random() > 0.9)), schema.get("maxItems", 2))
        return [a_document(rng, schema["items"], root, good * 0.9) for _ in range(count)]
    if kind == "integer":
        return rng.randint(schema.get("minimum", -9) - 1, schema.get("maximum", 9) + 1)
    fitting = [value for value in VALUES if isinstance(value, str) and jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.FormatChecker()).is_valid(value)]
    return rng.choice(fitting if kind == "string" and fitting else VALUES)


def schema_case(rng, schema):
    checker = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    texts = {}
    for _ in range(24):
        document = a_document(rng, schema, schema, rng.choice([1.0, 0.9]))
        texts[json.dumps(document, separators=(",", ":"), ensure_ascii=False)] = checker.is_valid(document)
    return {"schema": json.dumps(schema), "valid": [text for text, good in texts.items() if good],
            "invalid": [text for text, good in texts.items() if not good]}


def main():
    rng = random.Random(20)
    expressions = EXPRESSIONS + [random_expression(rng) for _ in range(40)]
    cases = [expression_case(source) for source in dict.fromkeys(expressions)]
    schemas = RECURSIVE + [random_schema(rng) for _ in range(60)]
    document = {"pieces": PIECES, "regexes": [case for case in cases if case["texts"]],
                "schemas": [schema_case(rng, schema) for schema in schemas]}
    path = pathlib.Path(__file__).parent / "constraints.json"
    lists = {name: ",\n".join(json.dumps(case) for case in document[name]) for name in ("regexes", "schemas")}
    path.write_text(f'{{"pieces": {json.dumps(PIECES)},\n"regexes": [\n{lists["regexes"]}],\n'
                    f'"schemas": [\n{lists["schemas"]}]}}\n')
    json.loads(path.read_text())
    print(len(document["regexes"]), "expressions,", sum(len(case["texts"]) for case in document["regexes"]), "texts;",
          len(document["schemas"]), "schemas,", sum(len(case["valid"]) for case in document["schemas"]), "valid,",
          sum(len(case["invalid"]) for case in document["schemas"]), "invalid")


if __name__ == "__main__":
    main()
