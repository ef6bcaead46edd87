"""Writes tests/golden/conversations.json: rows of data as TRL has them, and what transformers makes of each with
templates of ours: the text, and the tokens that {% generation %} marks as the assistant's.

Made with transformers 5.23.0 and tokenizers 0.23.3: python tests/golden/make_conversations.py
"""
import json
import pathlib

from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import _compile_jinja_template

ROOT = pathlib.Path(__file__).parents[2]
TOKENIZER = ROOT / "collimate/text/testdata/byte_level"

# As Qwen's models write tools and calls.
HERMES = """{%- if tools %}{{- '<|im_start|>system\\n' }}{%- if messages[0].role == 'system' %}
{{- messages[0].content + '\\n\\n' }}{%- endif %}{{- '# Tools\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + tool | tojson }}{%- endfor %}{{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'assistant' %}{{- '<|im_start|>assistant\\n' }}
{%- generation %}{%- if message.content is string %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls %}{%- if call.function %}{%- set call = call.function %}{%- endif %}
{{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}{{- call.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}{{- '<|im_end|>' }}{%- endgeneration %}{{- '\\n' }}
{%- elif message.role == 'tool' %}{{- '<|im_start|>user\\n<tool_response>\\n' + message.content }}
{%- if message.name %}{{- '\\nby ' + message.name }}{%- endif %}{{- '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role != 'system' or not loop.first %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""

# Joins texts: arguments are a text, and a turn with calls has no content.
JOINED = """{% for m in messages %}{% if m['role'] == 'assistant' and m['content'] is none %}{{ '<|im_start|>call ' }}
{% for call in m['tool_calls'] %}{{ call['function']['name'] + ' ' + call['function']['arguments'] }}{% endfor %}
{{ '<|im_end|>' }}{% else %}{{ '<|im_start|>' + m['role'] + ' ' + m['content'] + '<|im_end|>' }}{% endif %}{% endfor %}
{% if style == 'loud' %}{{ '!' }}{% endif %}{% if add_generation_prompt %}{{ '<|im_start|>assistant ' }}{% endif %}"""

# As Qwen3's write thoughts beside a content.
THOUGHTS = """{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}{%- if m.role == 'assistant' %}
{%- generation %}{%- if m.reasoning_content %}
{{- '<think>\\n' + m.reasoning_content.strip('\\n') + '\\n</think>\\n\\n' }}
{%- endif %}{{- m.content.lstrip('\\n') + '<|im_end|>' }}{%- endgeneration %}{{- '\\n' }}
{%- else %}{{- m.content + '<|im_end|>\\n' }}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""

TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Wetter in Zürich & <elsewhere>",
          "parameters": {"type": "object", "properties": {"zone": {"type": "string", "default": None},
                                                          "days": {"type": "integer"}}, "required": ["zone"]}}},
         {"type": "function", "function": {"name": "add", "parameters": {}}}]


def call(name, arguments):
    return {"id": "call12345", "type": "function", "function": {"name": name, "arguments": arguments}}


ASKED = [{"role": "user", "content": "the cat"}]
CALLED = [{"role": "assistant", "content": None, "tool_calls": [call("weather", {"zone": "Zürich", "days": 2})]},
          {"role": "tool", "tool_call_id": "call12345", "name": "weather", "content": "{\"sun\": true}"}]
ANSWERED = [{"role": "assistant", "content": "on the mat"}]
SYSTEM = [{"role": "system", "content": "the"}]
LATER = [{"role": "user", "content": "and then"}]
THOUGHT = "All numbers and the cat are Animals"  # has each answer in it, most of them inside a token
TEXT_CALL = [{"role": "assistant", "content": None, "tool_calls": [call("weather", "{\"zone\": \"Zürich\"}")]}]

ROWS = [
    (HERMES, {"messages": ASKED + ANSWERED}),
    (HERMES, {"messages": SYSTEM + ASKED + ANSWERED, "tools": TOOLS}),
    (HERMES, {"messages": ASKED + ANSWERED, "tools": json.dumps(TOOLS)}),
    (HERMES, {"messages": ASKED + ANSWERED, "tools": []}),
    (HERMES, {"messages": ASKED + CALLED[:1], "tools": TOOLS}),
    (HERMES, {"messages": SYSTEM + ASKED + CALLED + ANSWERED + LATER + ANSWERED, "tools": TOOLS}),
    (HERMES, {"messages": ASKED + [{**CALLED[0], "content": "the mat"}, *CALLED[1:]] + ANSWERED}),
    (HERMES, {"messages": ASKED + [{**CALLED[0], "tool_calls": CALLED[0]["tool_calls"] * 2}]}),
    (HERMES, {"messages": ASKED + ANSWERED, "chat_template_kwargs": {"enable_thinking": False}}),
    (JOINED, {"messages": ASKED + TEXT_CALL + CALLED[1:] + ANSWERED}),
    (JOINED, {"messages": ASKED + ANSWERED, "chat_template_kwargs": {"style": "loud"}}),
    *((THOUGHTS, {"messages": ASKED + [{"role": "assistant", "content": said, "reasoning_content": THOUGHT}]})
      for said in ("A", "a", "be", "cat", "the cat\n", "</think>", "assistant")),
]


def made(template, row):
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(TOKENIZER / "tokenizer.json"), chat_template=template)
    tools = row.get("tools")
    tools = json.loads(tools) if isinstance(tools, str) else tools
    messages, options = row["messages"], {"tools": tools or None, **row.get("chat_template_kwargs", {})}
    if template is JOINED:  # transformers 5 leaves a content of null out, which such templates look for
        def render(turns, add_generation_prompt):
            return _compile_jinja_template(template).render(messages=turns, add_generation_prompt=add_generation_prompt,
                                                            **options)
    else:
        def render(turns, add_generation_prompt):
            return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=add_generation_prompt,
                                                 **options)
    whole = {"row": row, "template": template, "text": render(messages, False), "prompt": render(messages[:-1], True)}
    if "endgeneration" in template:
        tokens = tokenizer.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True, **options)
        whole |= {"ids": tokens["input_ids"], "mask": tokens["assistant_masks"]}
    return whole


def main():
    cases = [made(*row) for row in ROWS]
    (pathlib.Path(__file__).parent / "conversations.json").write_text(
        "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases, {sum(sum(case.get('mask', [])) for case in cases)} trained tokens")


if __name__ == "__main__":
    main()
