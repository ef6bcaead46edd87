"""Tools through `collimate serve`: a model that has a token for a call, and what clients get of it."""
import json
import unittest

from serve_support import Server, WithModel, events_of

CALL = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
END, CALLS, MARK = 1, 3, 14  # token ids; the model ends a sequence by 1 or 2
HERMES = ("{% for m in messages %}{% if m.role == 'assistant' %}a{% for c in m.tool_calls %}<tool_call>"
          '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}'
          "{% else %}{{ m.content }}{% endif %}{% endfor %}{{ tools | tojson if tools }}"
          "{% if style == 'long' %}1234{% endif %}{% if add_generation_prompt %}a{% endif %}")
MESSAGES = [{"role": "user", "content": "2"}]
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {}}}]
# The call comes first; once or twice drawn, it is less likely than the end.
FIRST_A_CALL = {"temperature": 0, "logit_bias": {str(CALLS): 90, str(END): 86.5}, "presence_penalty": 2,
                "frequency_penalty": 2}


def write_tokenizer(model, template: str, specials: dict = {}, call: str = CALL) -> None:
    def added(id_: int, content: str, special: bool) -> dict:
        return {"id": id_, "content": content, "special": special, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False}
    letters = {c: i for i, c in enumerate("?$!c0123456789,a")}
    document = {"version": "1.0",
                "added_tokens": [added(0, "?", True), added(END, "$", True), added(CALLS, call, False),
                                *(added(id_, text, True) for id_, text in specials.items())],
                "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": {"type": "Fuse"},
                "model": {"type": "BPE", "vocab": letters, "merges": [], "unk_token": "?"}}
    (model / "tokenizer.json").write_text(json.dumps(document))
    (model / "tokenizer_config.json").write_text(json.dumps({"eos_token": "$", "chat_template": template}))


class Tools(WithModel):
    positions = 1024

    def serve(self, template: str, *flags: str, **more) -> Server:
        write_tokenizer(self.model, template, **more)
        return self.start(*flags)

    def test_calls_are_read_out_of_the_answer(self):
        server = self.serve(HERMES)
        asked = {"messages": MESSAGES, "tools": TOOLS, **FIRST_A_CALL}
        status, answer = server.post("/v1/chat/completions", asked)
        self.assertEqual(status, 200, answer)
        choice = answer["choices"][0]
        self.assertEqual((choice["finish_reason"], choice["message"]["content"]), ("tool_calls", None))
        given = choice["message"]["tool_calls"]
        self.assertEqual([call["function"] for call in given],
                         [{"name": "add", "arguments": '{"a": 2}'}] * (answer["usage"]["completion_tokens"] - 1))
        _, stream = server.post("/v1/chat/completions", asked | {"stream": True})
        events = [event["choices"][0] for event in events_of(stream)]
        calls = [one for event in events for one in event["delta"].get("tool_calls", [])]
        self.assertEqual([(one["index"], one["function"]) for one in calls],
                         list(enumerate(call["function"] for call in given)))
        self.assertEqual(events[-1]["finish_reason"], "tool_calls")
        # The answer and the result of its call are the next request's.
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "4"} for call in given]
        more = [*MESSAGES, choice["message"], *results]
        status, answer = server.post("/v1/chat/completions", asked | {"messages": more})
        self.assertEqual(status, 200, answer)
        # Without tools, or with none chosen, a call is text.
        for silent in ({"tools": []}, {"tool_choice": "none"}):
            _, answer = server.post("/v1/chat/completions", asked | silent)
            self.assertIn(CALL, answer["choices"][0]["message"]["content"])
            self.assertEqual(answer["choices"][0]["finish_reason"], "stop")

    def test_marks_that_are_special_tokens_are_seen(self):
        mark = "[TOOL_CALLS]"
        server = self.serve("{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}[TOOL_CALLS]"
                            "{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
                            "{{ tools | tojson if tools }}", specials={MARK: mark}, call='add[ARGS]{"a": 2}')
        # A digit, the mark, the call, and then the end.
        first = {"temperature": 0, "presence_penalty": 2, "frequency_penalty": 2,
                 "logit_bias": {"9": 96, str(MARK): 94, str(CALLS): 92.5, str(END): 91.2}}
        _, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, "tools": TOOLS, **first})
        message = answer["choices"][0]["message"]
        self.assertEqual([call["function"]["name"] for call in message["tool_calls"]], ["add"], answer)
        self.assertNotIn(mark, message["content"])
        _, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, **first})
        self.assertIn('add[ARGS]{"a": 2}', answer["choices"][0]["message"]["content"])
        self.assertNotIn(mark, answer["choices"][0]["message"]["content"])

    def test_calls_that_have_to_come_come(self):
        server = self.serve(HERMES)
        asked = {"messages": MESSAGES, "tools": TOOLS, "temperature": 0, "max_tokens": 4}
        named = {"type": "function", "function": {"name": "add"}}
        for choice in ({"tool_choice": "required"}, {"tool_choice": "required", "parallel_tool_calls": False},
                       {"tool_choice": named}):
            status, answer = server.post("/v1/chat/completions", asked | choice)
            self.assertEqual(status, 200, answer)
            message = answer["choices"][0]["message"]
            self.assertIsNone(message["content"])
            calls = [call["function"] for call in message["tool_calls"]]
            self.assertEqual(calls, [{"name": "add", "arguments": '{"a": 2}'}] * len(calls))
            if choice != {"tool_choice": "required"}:
                self.assertEqual((len(calls), answer["choices"][0]["finish_reason"]), (1, "tool_calls"))
        # The vocabulary has no tokens for a call of this one.
        other = {"type": "function", "function": {"name": "take"}}
        status, answer = server.post("/v1/chat/completions",
                                     asked | {"tools": [*TOOLS, other], "tool_choice": other})
        self.assertEqual(status, 400)
        self.assertIn("expected calls that completions can be", answer["error"]["message"])
        server = self.serve(HERMES, specials={MARK: "<tool_call>"})
        status, answer = server.post("/v1/chat/completions", asked | {"tool_choice": "required"})
        self.assertEqual((status, answer["error"]["param"]), (400, "tool_choice"))
        self.assertIn("expected none or auto with this model", answer["error"]["message"])

    def test_a_template_of_another_form_is_refused(self):
        server = self.serve("{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}")
        status, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, "tools": TOOLS})
        self.assertEqual((status, answer["error"]["param"]), (400, "tools"))
        self.assertIn("expected a model whose chat template writes calls as those of", answer["error"]["message"])

    def test_a_template_has_variables(self):
        server = self.serve(HERMES, "--chat-template-kwargs", "{style: long}")

        def tokens(**fields) -> int:
            status, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1, **fields})
            self.assertEqual(status, 200, answer)
            return answer["usage"]["prompt_tokens"]
        self.assertEqual(tokens(), tokens(chat_template_kwargs={"style": "short"}) + 4)
        status, answer = server.post("/v1/chat/completions",
                                     {"messages": MESSAGES, "chat_template_kwargs": {"stile": "long"}})
        self.assertEqual(status, 400)
        self.assertIn("expected variables that the chat template reads, got stile", answer["error"]["message"])
        status, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, "reasoning_effort": "low"})
        self.assertEqual(status, 400)
        self.assertEqual(answer["error"]["param"], "reasoning_effort")
        self.assertIn("[reasoning_effort] expected a model whose chat template reads it", answer["error"]["message"])

    def test_a_template_reads_how_much_to_think(self):
        server = self.serve("{{ reasoning_effort | default('medium') }}"
                            "{% for m in messages %}{{ m.content }}{% endfor %}")

        def tokens(**fields) -> int:
            status, answer = server.post("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1, **fields})
            self.assertEqual(status, 200, answer)
            return answer["usage"]["prompt_tokens"]
        self.assertEqual(tokens(), tokens(reasoning_effort="low") + 3)
        self.assertEqual(tokens(), tokens(chat_template_kwargs={"reasoning_effort": "minimal"}) - 1)


if __name__ == "__main__":
    unittest.main()
