"""Writes tests/golden/templates.json: what Jinja2, set up as in transformers, makes of templates that use
each part of the language that templates of chats use. The templates are our own.

Made with jinja2 3.1.6: python tests/golden/make_templates.py
`make_templates.py DIRECTORY OUT.json` writes the same for every *.jinja file of a directory and for the conversations
below, each in five ways: bench/peers/texts.sh compares.
`make_templates.py --published SHARED DIRECTORY` writes published_templates.json: what the templates of the shared data
and those of a directory (TRL 1.16.0's trl/chat_templates) make of them. It has hashes of templates and of texts alone.
"""
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

CALL = {"type": "function", "function": {"name": "now", "arguments": {"zone": "Zürich", "n": [1, 2.5, None, True]}}}
TOOL = {"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {
    "type": "object", "properties": {"zone": {"type": "string"}}}}}
MESSAGES = [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Hi 你好"},
            {"role": "assistant", "content": "<think>\nwell\n</think>\n\nHello", "tool_calls": [CALL]},
            {"role": "tool", "content": "12:00"}, {"role": "user", "content": "<b>&'\"</b>"}]
VARIABLES = {"messages": MESSAGES, "tools": None, "add_generation_prompt": True, "bos_token": "<s>",
             "eos_token": "</s>", "x": 7, "y": -3, "z": 2.5, "words": ["pear", "Apple", "fig", "apple"],
             "d": {"b": 1, "a": [2, "t"]}, "e": "", "big": 2**53 + 1,
             "blanks": "\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000 \r"}

TEMPLATES = [
    # Output and whitespace.
    "a{{ x }}b{{ 'c' ~ 1 ~ none ~ true }}{{ 'x' 'y' }}\n", "a\n  {% if x %}\n  b\n  {% endif %}\n\nc\n",
    "a {% if x %} b {% endif %} c", "a \n {%- if x -%} \n b{%+ endif +%}\nc", "{# one\n two #}\n  {# three #}\nd",
    "  {%- set a = 1 %}\n\n{{- a -}}\n\n e", "{% raw %}{{ x }}{% y %}{% endraw %}!",
    "\r\n{{ 'a\\n\\t\\'b\\u00e9' }}\r\n",
    # Expressions.
    "{{ x + y }} {{ x - y * 2 }} {{ x / 2 }} {{ x // 2 }} {{ y // 2 }} {{ x % 4 }} {{ y % 4 }} {{ 2 ** 5 }} {{ -x }}",
    "{{ z * 2 }} {{ 7.0 }} {{ 1e-7 if false else 0.1 + 0.2 }} {{ [1, 'a', none, 2.0, {'k': \"it's\"}] }}"
    " {{ (1, 2) | list }}",
    "{{ 1 < 2 < 3 }} {{ x == 7 and not y > 0 or false }} {{ 'a' in 'cat' }} {{ 'k' not in d }} {{ 'b' in d }}",
    "{{ 'yes' if x > 5 else 'no' }}{{ 'never' if x > 50 }}{{ x is odd }}{{ x is divisibleby 7 }}{{ y is not"
    " defined }}",
    "{{ 'a' * 3 }} {{ [1] * 2 + [3] }} {{ words[0] }} {{ words[-1][1:3] }} {{ words[::-1] }} {{ 'héllo'[1:] }}"
    " {{ 'abc'[::-2] }}",
    "{{ messages[0]['content'] }} {{ messages[0].role }}"
    " {{ messages[2].tool_calls[0].function.arguments.zone }} {{ d.missing }}",
    # Statements.
    "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{{ ' first' if loop.first }}"
    "{{ ' last' if loop.last }} {{ m.role }}\n{% endfor %}",
    "{% for m in messages if m.role != 'user' %}{{ loop.index0 }}{{ m.role }},{% else %}none{% endfor %}"
    "{% for q in [] %}{% else %}empty{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}"
    "{% for c in 'añb' %}<{{ c }}>{% endfor %}",
    "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% elif i > 5 %}{% break %}{% endif %}{{ i }}"
    "{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for w in words %}{{ loop.previtem }}>{{ w }}>{{ loop.nextitem }} {% endfor %}"
    "{% for i in range(5, 0, -2) %}{{ i }}{% endfor %}",
    "{% set ns = namespace(found=false, n=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set ns.found = true %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{{ ns.found }}{{ ns.n }}",
    "{% set a = 1 %}{% for i in range(2) %}{% set a = i + 5 %}{{ a }}{% endfor %}{{ a }}{% if true %}"
    "{% set a = 9 %}{% endif %}{{ a }}",
    "{% set a, b = 1, 'two' %}{{ b }}{{ a }}{% set block %}<{{ x }}>{% endset %}{{ block ~ block }}",
    "{% macro greet(name, mark='!') %}Hi {{ name }}{{ mark }}{% endmacro %}{{ greet('a') }}"
    "{{ greet('b', mark='?') }}{{ greet(name='c') | upper }}",
    "{% macro tree(n) %}({{ n }}{% if n > 0 %}{{ tree(n - 1) }}{% endif %}){% endmacro %}{{ tree(3) }}",
    "{% macro frame() %}[{{ caller() }}]{% endmacro %}{% call frame() %}in {{ x }}{% endcall %}"
    "{% filter upper %}abc{% endfilter %}",
    "{% generation %}{{ messages[2].content }}{% endgeneration %}",
    # Filters, tests, methods and functions.
    "{{ d | tojson }} {{ messages[2] | tojson(indent=2) }} {{ words | tojson(separators=(',', ':')) }}"
    " {{ '<\"é' | tojson }} {{ d | tojson(sort_keys=true) }}",
    "{{ ' a ' | trim }}|{{ words | join(', ') }}|{{ words | length }}|{{ words | first }}|{{ words | last }}"
    "|{{ words | sort }}|{{ words | sort(reverse=true, case_sensitive=true) }}",
    "{{ words | unique | list }} {{ words | map('upper') | join }}"
    " {{ messages | map(attribute='role') | list }} {{ words | reverse | list }}",
    "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
    " {{ messages | rejectattr('tool_calls') | map(attribute='role') | join('-') }}"
    " {{ [1, 2, 3] | select('odd') | list }} {{ [0, 1] | reject | list }}",
    "{{ missing | default('d') }} {{ e | default('d') }} {{ e | default('d', true) }}"
    " {{ d | items | map('join', ':') | list }} {{ d | dictsort | map('last') | list }} {{ d | string }}",
    "{{ 'a\nb\n\nc' | indent(2) }} {{ 'a\nb' | indent(2, true) }} {{ '3' | int + 1 }} {{ 'x' | int(5) }}"
    " {{ '2.5' | float }} {{ 3.7 | int }} {{ -2 | abs }} {{ 2.5 | round }} {{ [1, 2] | sum }} {{ [3, 1] | max }}",
    "{{ 'hello world' | capitalize }} {{ 'hello world' | title }} {{ 'ABC' | lower }} {{ 'aXbX' |"
    " replace('X', '-') }}",
    "{{ x is number }}{{ 'a' is string }}{{ d is mapping }}{{ words is iterable }}{{ words is sequence }}"
    "{{ none is none }}{{ missing is undefined }}{{ true is true }}{{ x is boolean }}{{ z is float }}"
    "{{ x is integer }}{{ x is in [7] }}{{ range is defined }}",
    "{{ ' ab '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'a,b,c'.split(',') }}|{{ 'a,b,c'.rsplit(',', 1) }}"
    "|{{ ' a  b '.split() }}|{{ 'a\nb\n'.splitlines() }}"
    "|{{ messages[2].content.split('</think>')[-1].lstrip('\n') }}",
    "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abcabc'.find('c') }}"
    "{{ 'abcabc'.rfind('é') }}{{ 'aab'.count('a') }}{{ 'ab'.upper() }}{{ '-'.join(['a', 'b']) }}"
    "{{ '12'.isdigit() }}{{ 'abc'.replace('b', '') }}",
    "{{ d.get('b') }}{{ d.get('q') }}{{ d.get('q', 4) }}{{ d.keys() | list }}{{ d.values() | list }}"
    "{{ dict(a=1, b='c') }}{{ words.index('fig') }}",
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% set rest = messages[1:] %}{% endif %}"
    "{{ rest | length }}",
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}{% endfor %}",
    "{{ {1: 'a', 'b': 2}[1] }} {{ {1: 'a', 'b': 2, 1.0: none} }} {{ {true: 1, none: 2, 2.5: 3} | tojson }}"
    "{{ 1 in {1: 2} }}{{ {2: 'x'}.get(2) }}{{ {2: 1}.items() | first | first }}{{ {2: 1} == {2.0: 1} }}"
    "{{ {2: 1}[3] }}",
    "{{ 7 | round }} {{ 17 | round(-1) }} {{ 7 | round(0, 'ceil') }} {{ 2.5 | round }} {{ true | round }}"
    " {{ '9007199254740993' | int }} {{ 1e3 | int }} {{ ' 12.9 ' | int }} {{ 'inf' | int(4) }}"
    " {{ 'nan' | float | int(6) }}",
    "{{ 'a,b-c (d\te.f <g' | title }} {{ 'a,b-c'.title() }} {{ missing is sequence }}{{ missing is iterable }}",
    "{{ 'a--b--c'.rsplit('--', 1) }} {{ 'aXXXb'.rsplit('XX') }} {{ 'aXXXb'.split('XX') }} {{ 'abab'.rfind('ab') }}"
    " {{ 'abc'.find('') }}{{ 'abc'.rfind('') }}{{ 'abc'.find('bd') }}{{ 'aaab'.replace('aab', 'c') }}"
    "{{ 'ab' in 'aab' }}",
    "{{ 'añb'[1] }}{{ 'añb'[-1] }}{{ 'añb'[::-1] }}{{ 'añb' | length }}{{ 'añb'.find('b') }}{{ 'añb'[5] }}"
    "{{ [1, 2, 3][1::9999999999 * 900000000] }}{{ range(1, 9, 9999999999 * 900000000) | list }}",
    # Numbers as Python's repr writes them.
    "{{ 200000 / 2 }} {{ 1e16 }} {{ 1e15 + 0.5 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1732620000000000.0 }} {{ -0.0"
    " }} {{ 1e300 }}"
    " {{ [1e5, 0.0001, 1e22, 'inf' | float, 'nan' | float] | tojson }} {{ {1e5: -1e5} | tojson }} {{ 123456.789e3 }}",
    "{{ big }} {{ big == big - 1 }} {{ big - 1 < big }} {{ big == big * 1.0 }} {{ [big, big - 1] | unique | list }}"
    " {{ (big - 1) in [big] }} {{ 2 ** 62 }} {{ (-3) ** 39 }} {{ 9007199254740993 / 1 }} {{ true == 1.0 }}",
    # White space and lines as Python has them.
    "[{{ blanks ~ 'a' ~ blanks ~ 'b' ~ blanks }}]{% for form in [(blanks ~ 'a' ~ blanks ~ 'b' ~ blanks)] %}"
    "[{{ form | trim }}][{{ form.strip() }}][{{ form.lstrip() }}][{{ form.rstrip() }}]{{ form.split() | tojson }}"
    "{{ form.split(none, 1) | tojson }}{{ form.rsplit(none, 1) | tojson }}{{ blanks.isspace() }}{{ ''.isspace() }}"
    "{{ form.isspace() }}{{ form.splitlines() | tojson }}{{ form.splitlines(true) | tojson }}{% endfor %}"
    "{{ '\u3000\xa012\x85\x0b' | int }}{{ blanks.split() }}{{ blanks | trim }}{{ '\u200b\u2060\ufeff' |"
    " trim | length }}",
    "{{ 'ñx'.lstrip('é') }} {{ 'éñxñé'.strip('ñé') }} {{ 'xé'.rstrip('©') }} {{ 'aé日b日é'.strip('日éa') }} {{"
    " 'aa'.strip('a') }}"
    " {{ ' a '.strip('') }}",
    "{{ 'a b c d'.rsplit(none, 2) }} {{ ' a  b c '.rsplit(none, 1) }} {{ ' a  b c '.rsplit() }} {{ 'a"
    " b'.rsplit(none, 0) }}"
    " {{ ' a b '.split(none, 0) }}",
    "{{ 'a\r\nb\rc\n\nd\x0be\u2028f' | indent(2) }}|{{ 'a\r\n\r\nb\n' | indent(2, true, true) }}|{{ 'a\n\n' |"
    " indent }}"
    "|{{ '' | indent(2, true) }}|{{ '\n' | indent('> ', blank=true) }}|{{ 'a\\rb\\r\\nc\\x1cd\\x85e' | indent(1) }}"
    "|{{ '\\n\\r\\n\\ra'.splitlines() }}",
    "a\u3000{%- if x -%}\u00a0b\x1f{%- endif %}\rc\u2003{% if x %}\u2003\n \u3000{% if x %}d{% endif %}{%"
    " endif %}{{\u00a0x }}",
    "{% raw -%}  \n {{ x }} \n {%- endraw -%} \n e", "a {%- raw %} {{ x }}\n  {% endraw %}\nb {%+ raw %}c{%+"
    " endraw +%}\nd",
    "{% raw %}\n{% endrawn %}{% x %}{{% endraw %}{% raw %}endraw{%endraw%}{{ x }}", "{% raw +%}a{% endraw %}",
    "{% raw %}a{% endraw", "{% raw %}{% raw %}{% endraw %}{% endraw %}",
    # Others.
    "{{ 'é\x7f\u2028😀<' | tojson(ensure_ascii=true) }} {{ {'é': 'é\x7f'} | tojson(true) }} {{ d | tojson(false, 1) }}"
    " {{ d | tojson(indent='--', sort_keys=true) }} {{ d | tojson(indent=0) }} {{ d | tojson(indent=1,"
    " separators=(' ; ', '=')) }}"
    " {{ d | tojson(2) }} {{ [[], {}] | tojson(indent=2) }}",
    "{{ 'ÉCOLE' | capitalize }} {{ '日本ABC'.capitalize() }} {{ 'a\u00a0b\u2003c-d' | title }} {{ 'éA' |"
    " capitalize | length }}",
    # Statements that few templates use.
    "{% with a = x, b = a %}{{ a }}{{ b }}{% set a = 2 %}{{ a }}{% endwith %}{{ a }}{% with %}{% set q = 1 %}{{ q }}"
    "{% endwith %}{{ q }}",
    "{% for g in [[1, [2, 3]], 4] recursive %}{{ loop.depth }}{{ loop.depth0 }}{{ loop.index }}({{ loop(g) if g is"
    " sequence else g }}){% endfor %}",
    "{% for m in messages %}{{ 'x' if loop.changed(m.role == 'user') }}{{ loop.revindex }}{{ loop.revindex0 }}{% endfor"
    " %}",
    "{% set shout | upper | trim %} a{{ x }} {% endset %}[{{ shout }}]{% filter trim | upper %} b {% endfilter %}",
    "{% set c = cycler('a', 'b', 'c') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}"
    "{% set j = joiner('; ') %}{% for w in words %}{{ j() }}{{ w }}{% endfor %}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    # Macros.
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 3, 4, 5, q=6) }}{{ m() }}"
    "{{ m(*[1, 2], **{'z': 3}) }}{{ m.name }}{{ m.arguments }}{{ m.catch_varargs }}{{ m.catch_kwargs }}{{ m.caller }}",
    "{% macro m() %}{{ caller('a', 2) if caller else 'none' }}{% endmacro %}{% call(p, q=1) m() %}{{ p }}{{ q }}{%"
    " endcall"
    " %}{{ m() }}{{ m.caller }}",
    # Filters, formats and methods that few templates use.
    "{{ '<a href=\"x\">&\'' | e }} {{ '<' | escape | e }} {{ '<' | safe | e }} {{ '<' | e | forceescape }}"
    " {{ ('<' | e) + '<' }} {{ ('<' | e) ~ '<' }} {{ ('<%s>' | safe) % '<' }} {{ '<' | e is escaped }}"
    " {{ '<' | upper | e | lower }}",
    "{{ '%s: %d, %5.2f|%-5s|%05d %x %%' % ('a', 7, 2.5, 'b', -3, 255) }} {{ '%(b)s' % d }} {{ '%s' % [1, 2] }}"
    " {{ '%s %s' | format('a', none) }} {{ '%(a)s' | format(a=1) }} {{ '%r' % ('a\'b',) }} {{ '%*d' % (4, 1) }} {{"
    " x % 4 }}",
    "{{ '{} {}'.format(1, 'b') }} {{ '{0}{1}{0}'.format('a', 'b') }} {{ '{:>5}|{:<5}|"
    "{:^5}|{:*^5}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+.2f} {:,} {:#x} {:.1%}'.format(42, 1.5, 1234567,"
    " 255, 0.5) }}"
    " {{ '{a[b]} {x!r} {{}}'.format(a=d, x='q') }}",
    "{{ messages | selectattr('content', 'string') | map(attribute='role') | list }} {{ messages |"
    " selectattr('role', 'in',"
    " ['user', 'tool']) | list | length }} {{ messages | rejectattr('role', '==', 'user') | map(attribute='role') |"
    " list }}"
    " {{ messages | map(attribute='tool_calls.0.function.name', default='-') | list }} {{ words | select('ne', 'fig') |"
    " list }} {{ [1, 2.0, 'a'] | reject('number') | list }} {{ words | map('replace', 'p', 'q') | list }}",
    "{% for role, all in messages | groupby('role') %}{{ role }}:{{ all | length }} {% endfor %}{% for g in messages |"
    " groupby('role') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}{{ words | batch(3, '-') | list }}{{ words"
    " | slice(3) |"
    " list }}",
    "{{ 'one two three' | truncate(8) }} {{ 'one two three' | truncate(8, true, '', 0) }} {{ 'one two three' |"
    " truncate(9,"
    " leeway=0) }} [{{ 'a' | center(5) }}] {{ 'a b-c d_e' | wordcount }} {{ 'a b/ü&' | urlencode }} {{ {'a b': 1,"
    " 'c': 'é'} |"
    " urlencode }} {{ 1234567 | filesizeformat }} {{ 2048 | filesizeformat(true) }}",
    "{{ (1, 2) }} {{ (1,) }} {{ () }} {{ d.items() | list }} {{ d | dictsort }} {{ (1, 2) == [1, 2] }} {{ [(1,"
    " 'a')] | tojson"
    " }} {{ {(1, 2): 'x'}[(1, 2)] }} {{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ (1, 2) + (3,) }}",
    "{{ 'ÉCOLE ß' | lower }} {{ 'école ß' | upper }} {{ 'éa öb' | title }} {{ 'Éa'.swapcase() }} {{ '²'.isdigit() }}{{"
    " '½'.isnumeric() }}{{ 'é'.isalpha() }}{{ 'É'.isupper() }}{{ 'é' is lower }}{{ '٣'.isdecimal() }}",
    "{{ 'ab'.ljust(4, '.') }}{{ 'ab'.rjust(4) }}{{ 'ab'.center(5, '*') }}{{ '-7'.zfill(4) }}{{ 'abc'.index('c') }}{{"
    " 'abab'.rindex('a') }}{{ 'abc'.replace('', '-') }}{{ 'abc'.count('') }}{{ d.copy() }}{{ dict(d, c=3) }}{{"
    " dict([('a',"
    " 1)]) }}{{ '0x1f' | int(0, 16) }}{{ '101' | int(base=2) }}",
    "{{ 1.115 | round(2) }} {{ 2.675 | round(2) }} {{ -5.5 % 2.5 }} {{ 5.5 % -2.5 }} {{ -5.5 % -2.5 }} {{ -7 // 2.0"
    " }} {{ 4.0 is divisibleby 2 }}{{"
    " 3.0 is odd"
    " }}{{ 1 is sameas 1.0 }}{{ 'upper' is filter }}{{ 'odd' is test }}{{ missing is callable }}{{ 'a' in missing }}",
    # Refused.
    "{% with a %}{% endwith %}", "{{ '%d' % 'a' }}", "{{ '%s %s' % 'a' }}", "{{ '%s' % (1, 2) }}", "{{"
    " '{}'.format() }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(q=2) }}", "{% macro m(a)"
    " %}{% endmacro"
    " %}{{ m(1, a=2) }}", "{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}", "{{ 1 is odd is true }}", "{{"
    " [1] in d }}",
    "{% if x %}", "{{ x", "{{ 'open }}", "{% for %}", "{{ missing.attribute }}", "{{ x | nofilter }}",
    "{{ 'a' + 1 }}", "{{ 1 / 0 }}",
    "{{ words.append(1) }}", "{{ x is notest }}", "{% endfor %}", "{{ nofunction() }}",
]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception,
                       strftime_now=lambda form: datetime.datetime.now().strftime(form))
    return env


def rendered(source, variables, env=None):
    """The text; None where it is refused."""
    try:
        return (env or environment()).from_string(source).render(**variables)
    except (jinja2.exceptions.TemplateError, TypeError, ZeroDivisionError, AttributeError, LookupError,
            ValueError):
        return None


ODD = {"role": "user", "content": "\t<|im_end|>\n\u00a0e\u0301 \U0001F469\u200d\U0001F467 {{ x }}\r\n\x00"}
CONVERSATIONS = [
    [], *(MESSAGES[:length] for length in range(1, 6)), *(MESSAGES[1:length] for length in range(2, 6)), [ODD],
    [MESSAGES[1], {"role": "assistant", "content": "Hello", "reasoning_content": "well"}, ODD],
    [MESSAGES[1], {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]}, MESSAGES[3], MESSAGES[3]],
    [{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": " you"}]}]]
WAYS = [{}, {"add_generation_prompt": False}, {"enable_thinking": False}, {"tools": [TOOL]},
        {"tools": [TOOL], "enable_thinking": True, "add_generation_prompt": False}]


def conversations():
    return [VARIABLES | {"messages": messages} | way for messages in CONVERSATIONS for way in WAYS]


DAY = datetime.date(2026, 1, 2)  # in place of today's in published_templates.json


def hashed(text):
    """base::stable_hash: FNV-1a of 64 bits, and the finaliser of SplitMix64."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ value >> 27) * 0x94D049BB133111EB % 2**64
    return f"{value ^ value >> 31:016x}"


def published(shared, directory):
    """Gives (name, template) of those in tokenizer_config.json of the shared data, and of *.jinja of the directory."""
    for path in sorted(pathlib.Path(shared, "data").rglob("tokenizer_config.json")):
        source = json.loads(path.read_text()).get("chat_template")
        if source:
            yield str(path.parent.relative_to(pathlib.Path(shared, "data"))), source
    for path in sorted(pathlib.Path(directory).glob("*.jinja")):
        yield "trl/" + path.name, path.read_bytes().decode()


def texts_of(source, env):
    return [rendered(source, variables, env) for variables in conversations()]


def write_published(shared, directory):
    env = environment()
    env.globals["strftime_now"] = DAY.strftime
    cases = [{"name": name, "template": hashed(source),
              "texts": [text if text is None else hashed(text) for text in texts_of(source, env)]}
             for name, source in published(shared, directory)]
    document = {"variables": VARIABLES, "conversations": CONVERSATIONS, "ways": WAYS, "day": str(DAY)}
    head = json.dumps(document, separators=(",", ":"))[:-1]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path = pathlib.Path(__file__).parent / "published_templates.json"
    path.write_text(f'{head},\n"cases":[\n{lines}\n]}}\n')
    return [{"text": text} for case in cases for text in case["texts"]]


def main():
    if sys.argv[1:2] == ["--published"]:
        cases = write_published(*sys.argv[2:])
    elif len(sys.argv) == 3:
        cases = [{"template": path.read_text(), "variables": variables, "text": rendered(path.read_text(), variables)}
                 for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jinja")) for variables in conversations()]
        pathlib.Path(sys.argv[2]).write_text(json.dumps({"variables": VARIABLES, "cases": cases}))
    else:
        document = {"variables": VARIABLES,
                    "cases": [{"template": source, "text": rendered(source, VARIABLES)} for source in TEMPLATES]}
        path = pathlib.Path(__file__).parent / "templates.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
        cases = document["cases"]
    print(f"{len(cases)} cases, {sum(case['text'] is None for case in cases)} refused")


if __name__ == "__main__":
    main()
