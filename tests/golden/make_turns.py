"""Writes tests/golden/turns.json: conversations, templates of ours that write an earlier turn in another way than the
last one, and what transformers says of each: its text and, by {% generation %}, where the assistant speaks in it. The
templates are given without these marks, which are what our program is to find.

Made with transformers 5.23.0: python tests/golden/make_turns.py
`make_turns.py DIRECTORY OUT.json` writes the same for every NAME.jinja of a directory with a NAME_training.jinja beside
it, TRL's templates with the marks: bench/peers/texts.sh compares. Where NAME_training writes another text, as TRL's for
models whose templates drop thoughts, only what it says of the trained texts is comparable: `same` is false.
"""
import json
import pathlib
import re
import sys

from transformers.utils.chat_template_utils import render_jinja_template

HEAD, END = "<|im_start|>{{ m.role }}\n", "<|im_end|>"
SAID = "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}"
LOOP = "{% for m in messages %}"
ASK = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
OTHERS = "{% else %}" + HEAD + "{{ m.content }}" + END + "{% endif %}"
PLAIN = LOOP + "{% if m.role == 'assistant' %}" + HEAD + SAID + OTHERS + "{% endfor %}"
THOUGHT = "{% set answer = m.content.split('</think>')[-1].lstrip() %}{% set think = m.content.split('</think>')[0] %}"
TEMPLATES = {
    # Thoughts are written in the last turn alone, as by Qwen3's.
    "thoughts of the last turn": LOOP + "{% if m.role == 'assistant' %}" + THOUGHT + HEAD +
    "{% generation %}{% if loop.last %}<think>{{ think.replace('<think>', '') if '</think>' in m.content }}</think>"
    "{% endif %}{{ answer }}<|im_end|>{% endgeneration %}" + OTHERS + "\n{% endfor %}" + ASK,
    # The prompt opens the thoughts that earlier turns leave out, as DeepSeek-R1's.
    "an open thought": LOOP + "{% if m.role == 'assistant' %}" + THOUGHT + HEAD +
    "{% generation %}{{ answer }}<|im_end|>{% endgeneration %}" + OTHERS + "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}",
    # The prompt says that nothing is thought, as Qwen3.5's without thinking; thoughts of the data are written.
    "a closed thought": LOOP + "{% if m.role == 'assistant' %}" + THOUGHT + HEAD + "<think>"
    "{% generation %}{{ think.replace('<think>', '') if '</think>' in m.content and loop.last }}</think>{{ answer }}"
    "<|im_end|>{% endgeneration %}" + OTHERS + "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>-</think>{% endif %}",
    # A conversation without a prompt ends with eos, as Phi-3's.
    "eos behind all": LOOP + "{% if m.role == 'assistant' %}" + HEAD + "{% generation %}{{ m.content }}<|im_end|>"
    "{{ '\\n' + eos_token if loop.last }}{% endgeneration %}{{ '\\n' if not loop.last }}"
    + OTHERS.replace("{% endif %}", "\n{% endif %}") + "{% endfor %}" + ASK,
    # A turn ends with two special tokens, as Cohere's, and earlier ones are written without their first blank.
    "two ends": PLAIN.replace("<|im_end|>{% endgen", "<|im_end|><|endoftext|>{% endgen").replace(
        "{{ m.content }}", "{{ m.content if loop.last else m.content.lstrip() }}", 1) + ASK,
    # The last turn has an end of its own, as gpt-oss's.
    "an end of the last turn": (LOOP + "{% if m.role == 'assistant' %}" + HEAD +
                                "{% generation %}{{ m.content }}{{ '<|return|>' if loop.last else '<|im_end|>' }}"
                                "{% endgeneration %}" + OTHERS + "{% endfor %}" + ASK),
    # The system's message stands before the last question, as in Mistral's; the header of an answer is its prompt's.
    "a system that moves": LOOP + "{% if m.role == 'user' %}<|im_start|>{{ messages[0].content if messages[0].role == "
    "'system' and loop.index0 >= loop.length - 2 }}{{ m.content }}[/INST]{% elif m.role == 'assistant' %}"
    "{% generation %} {{ m.content | trim }}<|im_end|>{% endgeneration %}{% endif %}{% endfor %}",
    # Calls of tools, and results in the place of a question.
    "calls": LOOP + "{% if m.role == 'assistant' %}" + HEAD + "{% generation %}{% if loop.last %}<think></think>"
    "{% endif %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>{% endgeneration %}" + OTHERS + "\n{% endfor %}" + ASK,
    # A result of a tool is named by the call before it, whose content goes where an answer follows, as gpt-oss's.
    "calls that results need": "{% set called = namespace(name='') %}" + LOOP + "{% if m.tool_calls %}"
    "{% set called.name = m.tool_calls[0].function.name %}{% set later = messages[loop.index:] %}<|im_start|>assistant"
    "{% generation %}{{ m.content if not later }} to={{ called.name }}<|call|>{{ m.tool_calls[0].function.arguments "
    "| tojson }}<|im_end|>{% endgeneration %}{% elif m.role == 'tool' %}{{ called.name or raise_exception('no call') }}"
    "<|im_start|>{{ m.content | tojson }}<|im_end|>{% elif m.role == 'assistant' %}<|im_start|>assistant"
    "{% generation %}<|final|>{{ m.content }}{{ '<|return|>' if loop.last else '<|im_end|>' }}{% endgeneration %}" +
    OTHERS + "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{% endif %}",
}
SPECIAL = r"<[|｜][^<>\s]*[|｜]>|</?s>|<(?:start|end)_of_[a-z]+>|<\|turn>|<turn\|>"
TOOL_CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}


def turns(*contents, system=None):
    roles = ("user", "assistant") * len(contents)
    return ([{"role": "system", "content": system}] if system else []) + [
        {"role": role, "content": content} for role, content in zip(roles, contents)]


CONVERSATIONS = [
    turns("a", "one"), turns("a", "one", "b", "two"), turns("user", "assistant", "user", "a", "b", "assistant\n"),
    turns("你好", " é ", "a", "a", system="Be brief."),
    turns("a", "<think>\nwell\n</think>\n\none", "b", "<think>\nso\n</think>\n\ntwo", system="s"),
]
CALLS = turns("a", "one", "b")[:3] + [{"role": "assistant", "content": "", "tool_calls": [TOOL_CALL]},
                                      {"role": "tool", "name": "add", "content": "3"},
                                      {"role": "assistant", "content": "two"}] + turns("c", "three")


def rendered(template, messages):
    """The text and where it is marked, in bytes; None where it is refused."""
    try:
        texts, marked = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask=True,
                                              bos_token="<s>", eos_token="<|endoftext|>")
    except Exception:  # whatever a template raises
        return None
    text = texts[0]
    return text, [[len(text[:at].encode()) for at in span] for span in marked[0]]


def case(name, marked, bare, messages):
    made = rendered(marked, messages)
    if made is None:
        return None
    plain = rendered(bare + "{% generation %}{% endgeneration %}", messages)
    same = plain is not None and plain[0] == made[0]
    specials = sorted(set(re.findall(SPECIAL, made[0] + bare)))
    return {"name": name, "template": bare, "messages": messages, "text": made[0], "marked": made[1], "same": same,
            "specials": specials}


def main():
    if len(sys.argv) == 3:
        pairs = [(path.stem, (path.parent / f"{path.stem}_training.jinja").read_text(), path.read_text())
                 for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja"))
                 if (path.parent / f"{path.stem}_training.jinja").exists()]
        out = pathlib.Path(sys.argv[2])
    else:
        pairs = [(name, marked, re.sub(r"{% (end)?generation %}", "", marked)) for name, marked in TEMPLATES.items()]
        out = pathlib.Path(__file__).parent / "turns.json"
    cases = [case(*pair, messages) for pair in pairs for messages in [*CONVERSATIONS, CALLS]]
    cases = [one for one in cases if one and (one["messages"] is not CALLS or one["name"] not in TEMPLATES or
                                              one["name"].startswith("calls"))]
    out.write_text("[\n" + ",\n".join(json.dumps(one) for one in cases) + "\n]\n")
    print(f"{len(cases)} cases of {len(pairs)} templates, {sum(one['same'] for one in cases)} of the same text")


if __name__ == "__main__":
    main()
