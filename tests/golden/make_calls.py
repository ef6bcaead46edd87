"""Writes tests/golden/calls.json: answers with calls of tools as models say them, and what other programs read in them:
vLLM's parsers of gpt-oss (harmony), of Phi-4-mini and of Mistral, and mistral_common's of calls with [CALL_ID], which
vLLM does not know. Each answer of harmony and of Mistral is also given to vLLM piece by piece: `streamed`.

Made with vLLM 0.32.0 and mistral_common 1.13.1: TIKTOKEN_ENCODINGS_BASE=DIRECTORY python tests/golden/make_calls.py
The directory has o200k_base.tiktoken, which openai_harmony would load from the network (it compares a hash).
Left out are calls of unknown functions and broken JSON, which vLLM gives as calls and we as text, braces in a text of
Mistral's, where vLLM's stream ends a call, and lists in arguments of Phi-4-mini (vLLM's pull request 48795). vLLM drops
the text beside calls of Phi-4-mini: null is written.
"""
import json
import pathlib

from mistral_common.experimental.tools import _decode_tool_call_v11_with_call_id
from openai_harmony import HarmonyEncodingName, load_harmony_encoding
from tokenizers import Tokenizer, models, pre_tokenizers, decoders
from transformers import PreTrainedTokenizerFast
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.harmony import HarmonyParser
from vllm.reasoning.gptoss_reasoning_parser import GptOssReasoningParser
from vllm.tool_parsers.gptoss_tool_parser import GptOssToolParser
from vllm.tool_parsers.mistral_tool_parser import MistralToolParser
from vllm.tool_parsers.phi4mini_tool_parser import Phi4MiniJsonToolParser

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
         for name in ("add", "now", "get_weather")]
REQUEST = ChatCompletionRequest(messages=[{"role": "user", "content": "a"}], model="m", tools=TOOLS)
MARKS = ["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"]


def bytes_with_marks():
    """A tokenizer of bytes and Mistral's marks."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(MARKS)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


BYTES = bytes_with_marks()
HARMONY = load_harmony_encoding(HarmonyEncodingName.HARMONY_GPT_OSS)


class HarmonyTokenizer:
    """Stands for a model's tokenizer: HarmonyParser asks it for no more."""

    def decode(self, ids):
        return HARMONY.decode(ids)

    def get_vocab(self):
        return {}


def call(function, id=""):
    return [function.name, json.loads(function.arguments), id]


def of_deltas(deltas):
    """Content, thoughts and the names of calls; vLLM's server adds the ends of Mistral's arguments by itself."""
    content, thoughts, calls = "", "", []
    for delta in deltas:
        if delta is None:
            continue
        content += delta.content or ""
        thoughts += getattr(delta, "reasoning", None) or ""
        for one in delta.tool_calls or []:
            while len(calls) <= one.index:
                calls.append("")
            calls[one.index] += one.function.name or ""
    return {"content": content, "thoughts": thoughts, "calls": calls}


def harmony(answer):
    """The answer stands behind <|start|>assistant."""
    def parser():
        class Parser(HarmonyParser):
            reasoning_parser_cls, tool_parser_cls = GptOssReasoningParser, GptOssToolParser
        return Parser(HarmonyTokenizer(), TOOLS)
    ids = HARMONY.encode(answer, allowed_special="all")
    thoughts, content, calls = parser().parse(answer, REQUEST, True, ids)
    one = parser()
    deltas = [one.parse_delta("", [id], REQUEST, finished=i + 1 == len(ids)) for i, id in enumerate(ids)]
    return {"content": content or "", "thoughts": thoughts or "", "calls": [call(c) for c in calls or []],
            "streamed": of_deltas(deltas)}


def phi(answer):
    made = Phi4MiniJsonToolParser(BYTES, TOOLS).extract_tool_calls(answer, REQUEST)
    return {"content": made.content, "thoughts": "", "calls": [call(one.function) for one in made.tool_calls]}


def mistral(answer):
    made = MistralToolParser(BYTES, TOOLS).extract_tool_calls(answer, REQUEST)
    one, deltas, text, before = MistralToolParser(BYTES, TOOLS), [], "", []
    for id in BYTES.encode(answer):
        piece = BYTES.decode([id])
        deltas.append(one.extract_tool_calls_streaming(text, text + piece, piece, before, [*before, id], [id], REQUEST))
        text, before = text + piece, [*before, id]
    return {"content": made.content or "", "thoughts": "", "calls": [call(c.function) for c in made.tool_calls],
            "streamed": of_deltas(deltas)}


class MistralCommonTokenizer:
    """Stands for a tokenizer: mistral_common asks it for no more."""

    def get_special_token(self, mark):
        return BYTES.convert_tokens_to_ids(mark)

    def decode(self, ids, special_token_policy=None):
        return BYTES.decode(ids, skip_special_tokens=True)


def mistral_ids(answer):
    calls = [_decode_tool_call_v11_with_call_id(BYTES.encode(one), MistralCommonTokenizer())
             for one in answer.split("[TOOL_CALLS]")[1:]]
    return {"content": answer.split("[TOOL_CALLS]")[0], "thoughts": "",
            "calls": [call(one.function, one.id) for one in calls]}


THINK = "<|channel|>analysis<|message|>I add.\nThen I say it.<|end|><|start|>assistant"
ADD = '<|channel|>commentary json<|message|>{"a": 1, "b": [2, "<|x|>"]}<|call|>'
ANSWERS = {
    harmony: [
        "<|channel|>final<|message|>Four.<|return|>",
        THINK + "<|channel|>final<|message|>Four é.\n<|return|>",
        THINK + " to=functions.add" + ADD,
        " to=functions.add" + ADD,
        THINK + '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Köln"}<|call|>',
        "<|channel|>commentary to=functions.now<|message|>{}<|call|>",
        "<|channel|>analysis to=functions.now code<|message|>{}",
        "<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant to=functions.now" + ADD,
        "<|channel|>commentary to=now json<|message|>{}<|call|>",
        THINK + "<|channel|>commentary<|message|>One.<|end|><|start|>assistant<|channel|>final"
        "<|message|>Two.<|return|>",
        THINK + "<|channel|>analysis<|message|>More.<|end|><|start|>assistant to=functions.now" + ADD +
        "<|start|>assistant to=functions.add" + ADD,
        "<|channel|>analysis<|message|>cut",
        "Four, without marks.",
    ],
    phi: [
        'functools[{"name": "add", "arguments": {"a": 1, "b": "é"}}]',
        'functools[{"name": "add", "arguments": {"a": {"c": 1.50}}}, {"name": "now", "arguments": {}}]',
        'Let me see. functools[\n {"name": "now", "parameters": {}}\n]\n',
        "No functools here.", "",
    ],
    mistral: [
        '[TOOL_CALLS]add[ARGS]{"a": 1, "b": [2, "]"]}',
        'I look. [TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]now[ARGS]{}',
        '[TOOL_CALLS]get_weather{"city": "Oslo"}',
        "Plain text.",
    ],
    mistral_ids: [
        '[TOOL_CALLS]add[CALL_ID]a1B2c3D4e[ARGS]{"a": 1, "b": [2, "]}"]}',
        '[TOOL_CALLS]add[CALL_ID]VvvODy9mT[ARGS]{"a": 1}[TOOL_CALLS]now[CALL_ID]000000001[ARGS]{}',
    ],
}
FORMS = {harmony: "harmony", phi: "functools", mistral: "named", mistral_ids: "named"}


def main():
    cases = [{"form": FORMS[read], "answer": answer, **read(answer)} for read in ANSWERS for answer in ANSWERS[read]]
    text = "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n"
    pathlib.Path(__file__).with_name("calls.json").write_text(text)


if __name__ == "__main__":
    main()
