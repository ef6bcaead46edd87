"""Writes tests/golden/random_templates.json: small templates that a program draws, and what Jinja2, set up as in
transformers (make_templates.py), makes of them.

Made with jinja2 3.1.6: python tests/golden/make_random_templates.py
`make_random_templates.py COUNT SEED OUT.json` writes so many others: COLLIMATE_TEMPLATE_CASES=OUT.json is for tests.
Left out are templates of which Jinja2 prints what has no text here: a generator, a macro, a place in memory.
"""
import json
import pathlib
import random
import re
import sys

from make_templates import MESSAGES, environment

VARIABLES = {"messages": MESSAGES, "x": 7, "y": -3, "z": 2.5, "n": None, "t": True, "e": "", "s": "héllo wörld",
             "markup": "<b>&'\"</b>", "words": ["pear", "Apple", "fig", "apple"], "ints": [3, 1, 2, 1],
             "d": {"b": 1, "a": [2, "t"], "c": {"k": "v"}},
             "rows": [{"k": "b", "v": 2, "on": True}, {"k": "A", "v": 1}, {"k": "b", "v": 3, "on": False}]}

# Each symbol's texts; <symbol> in one stands for a text of that symbol. The first line of a symbol has what is drawn
# where no more may be nested.
GRAMMAR = {
    "text": ["s", "e", "markup", "messages[1].content", "words[0]", "<quoted>", "<quoted>"],
    "text more": [
        "(<text> ~ <any>)", "(<text> + <text>)", "(<text> * <times>)", "(<text> | <text filter>)", "<percent>",
        "<braces>",
        "(<text> | <text filter>)", "(<text>).<method>", "(<text>)[<slice>]", "(<text>)[<int>]", "(<any> | string)",
        "(<text> if <truth> else <text>)", "(<list> | join(<quoted>))"],
    "quoted": ["'a'", "'B c'", "''", "' x '", "'one two three'", "'é'", "'%'", "'{}'", "'<i>'", "'a-b_c'", "'12'",
               "'-3'",
               "'2.50'", "'A\\nb\\n\\nc'"],
    "times": ["0", "1", "2"],
    "place": ["", "", "1", "-1", "2", "0", "-2"],
    "slice": ["<place>:<place>", "<place>:<place>:<step>"],
    "step": ["2", "-1", "1"],
    "text filter": [
        "upper", "lower", "capitalize", "title", "trim", "length", "e", "escape", "forceescape", "string", "wordcount",
        "first", "last", "list", "reverse", "int", "float", "center(9)", "truncate(6, true)", "truncate(5, leeway=0)",
        "truncate(8, false, '…', 1)", "replace('a', 'o')", "indent(2)", "urlencode", "default('z')", "safe", "tojson",
        "join('-')", "d('q', true)", "indent(1, true, blank=true)", "count"],
    "method": [
        "upper()", "strip()", "lstrip()", "rstrip('ox ')", "split()", "split(' ', 1)", "rsplit('o')", "title()",
        "startswith('a')", "endswith(('e', ' '))", "find('o')", "rfind('l')", "count('o')", "replace('o', '0', 1)",
        "isdigit()", "isalpha()", "isalnum()", "isupper()", "islower()", "isspace()", "partition(' ')",
        "rpartition('o')", "ljust(7) ~ '|'", "rjust(7, '.')", "center(8, '*')", "zfill(6)", "swapcase()",
        "capitalize()", "splitlines()", "join(['a', 'b'])", "removeprefix('a')", "removesuffix('c')", "casefold()",
        "istitle()", "isnumeric()", "isdecimal()", "replace('', '-')", "count('')", "format(1, 'b')"],
    "percent": [
        "('%s' % <text>)", "('%d items' % <int>)", "('%05d|%-5d|%+d' % (<int>, <int>, <int>))", "('%.2f' % <number>)",
        "('%x %X %o' % (<int>, <int>, <int>))", "('%(b)s-%(a)s' % d)", "('%(b)s-%(a)s' | format(a=<any>, b=<any>))",
        "('100%%' % ())", "('%5s|%-5s|%.2s' % (<text>, <text>, <text>))", "('%r' % (<any>,))", "('%s %s' % <text>)",
        "('%e %g' % (<number>, <number>))", "('%8.3f' | format(<number>))", "('%s and %s' | format(<any>, <any>))",
        "('%c' % 65)", "('%i' % <number>)", "('%*d' % (4, <int>))", "(('<i>%s' | safe) % <text>)"],
    "braces": [
        "'{}'.format(<any>)", "'{:>6}|{:<6}|{:^6}'.format(<text>, <text>, <text>)", "'{0}{1}{0}'.format(<any>, <any>)",
        "'{:05d} {:+d}'.format(<int>, <int>)", "'{:.2f} {:e}'.format(<number>, <number>)",
        "'{:,}'.format(<int> * 12345)",
        "'{x!r} {y}'.format(x=<any>, y=<any>)", "'{{{}}}'.format(<text>)", "'{:*^9}'.format(<text>)",
        "'{:x} {:b} {:#x}'.format(9, 5, 255)", "'{:.1%}'.format(<number>)", "'{0[k]} {0[v]}'.format(rows[0])",
        "'{:.3}'.format(<text>)", "'{:g}'.format(<number>)"],
    "int": ["x", "y", "0", "1", "2", "3", "-1", "10", "ints[0]", "true"],
    "int more": ["(<int> <whole sign> <int>)", "(<list> | length)", "(-<int>)", "(<int> ** <times>)",
                 "(<text> | length)",
                 "(<int> | <number filter>)"],
    "whole sign": ["+", "-", "*", "//", "%"],
    "number": ["z", "0.5", "1.25", "1e6", "x", "-2.75", "<int>"],
    "number more": ["(<number> <whole sign> <number>)", "(<number> / <number>)", "(<number> | <number filter>)",
                    "<int>"],
    "number filter": ["abs", "int", "float", "round", "round(1)", "round(1, 'floor')", "string", "filesizeformat",
                      "tojson",
                      "round(-1)", "filesizeformat(true)", "default(1)", "round(2, 'ceil')", "int(2)", "float(1.5)"],
    "list": ["words", "ints", "[]", "[1, 'a', none]", "('a', 2)", "range(4) | list", "d.a", "[[1, 2], [3]]"],
    "list more": [
        "[<any>, <any>]", "(<list>)[<slice>]", "(<list> + <list>)", "(<any>,)", "(<list> | <list filter>)",
        "(<list> * 2)",
        "(rows | <row filter>)", "(<text> | list)", "d.items() | list", "(d | dictsort)", "(d | dictsort(true))",
        "(d | dictsort(by='key'))", "(d | dictsort(reverse=true))"],
    "list filter": [
        "first", "last", "length", "list", "reverse | list", "join(', ')", "sort", "sort(reverse=true)",
        "unique | list",
        "map('string') | list", "map('upper') | join", "select('string') | list", "reject('none') | list",
        "batch(2) | list", "batch(3, 0) | list", "slice(2) | list", "slice(3, '-') | list", "tojson", "min", "max",
        "select('in', ['fig', 1]) | list", "reject('eq', 1) | list", "select('gt', 1) | list", "string",
        "map('default', 'u') | list", "sort(case_sensitive=true)"],
    "row filter": [
        "map(attribute='k') | list", "map(attribute='on', default='?') | list", "selectattr('on') | list",
        "selectattr('v', '>', 1) | map(attribute='v') | list", "rejectattr('k', 'equalto', 'b') | list",
        "selectattr('on', 'defined') | list | length", "sum(attribute='v')", "sort(attribute='k') | list",
        "sort(attribute='k,v', reverse=true) | map(attribute='v') | join", "min(attribute='v')", "max(attribute='k')",
        "unique(attribute='k') | list", "join('/', attribute='k')", "groupby('k') | map('first') | list",
        "rejectattr('on', 'undefined') | map(attribute='k') | list",
        "groupby('k', case_sensitive=true) | map('last') | map('length') | list"],
    "any": ["<text>", "<int>", "<number>", "<list>", "<truth>", "<other>"],
    "other": ["n", "t", "missing", "d", "none", "d.q", "rows[0].on", "d['b']", "d.c.k"],
    "truth": ["t", "x > 3", "true", "false", "missing is defined", "e"],
    "truth more": [
        "(<any> is <test>)", "(<any> is not <test>)", "(<number> is <number test>)", "(<number> is not <number test>)",
        "(<any> == <any>)", "(<any> != <any>)", "(<number> <order> <number>)", "(<text> in <container>)", "(not <any>)",
        "(<text> not in <container>)", "(<any> and <any>)", "(<any> or <any>)"],
    "order": ["<", "<=", ">", ">="],
    "container": ["<text>", "<list>", "d", "missing"],
    "test": ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
             "iterable", "callable", "true", "false", "escaped", "sameas none", "sameas true", "in [1, 'a', 7]", "eq 7",
             "ne ''", "lower", "upper"],
    "number test": ["odd", "even", "divisibleby(2)", "divisibleby 3", "gt 1", "le(2)", "lessthan 3", "ge 7", "lt 2.5"],
    "body": ["", "t", "{{ x }}"],
    "body more": ["<statement>", "<statement>", "<statement><statement>"],
    "o": ["{%", "{%-", "{%", "{%+"],
    "c": ["%}", "-%}", "%}", "+%}"],
    "name": ["a", "b", "x", "item"],
    "statement": ["{{ <any> }}", "{{- <any> -}}", " text ", "\n", "  \n  ", "T\n", " "],
    "statement more": [
        "{{ <any> }}", "<o> if <truth> <c><body>{% elif <truth> %}<body>{% else %}<body><o> endif <c>",
        "<o> for <name> in <list> <c><body>{{ loop.<of loop> }}<o> endfor <c>",
        "<o> for <name> in <list> if <truth> <c><body><o> endfor <c>",
        "<o> for k, v in d.items() <c>{{ k }}<body><o> endfor <c>",
        "<o> for <name> in <list> <c><body>{% else %}<body><o> endfor <c>", "<o> set q = <any> <c>{{ q }}",
        "<o> set p<block filter> <c><body><o> endset <c>{{ p }}",
        "<o> with a = <any> <c><body>{{ a }}<o> endwith <c>{{ a }}",
        "<o> with x = <any>, c = x <c>{{ c }}<o> endwith <c>",
        "<o> filter <word filter> <c><body><o> endfilter <c>", "<macro>{{ <macro call> }}",
        "<macro>{% call m(1) %}in{% endcall %}", "<macro>{% call(u) m() %}{{ u }}{% endcall %}",
        "<o> set ns = namespace(v=<any>) <c><o> set ns.v = <any> <c>{{ ns.v }}",
        "{% for g in [[1, [2, 3]], 4] recursive %}{{ loop.depth }}{{ loop(g) if g is sequence else g }}<body>"
        "{% endfor %}",
        "{% for r in rows %}{{ loop.changed(r.k) }}{% if <truth> %}<jump>{% endif %}<body>{% endfor %}",
        "{% set j = joiner(<quoted>) %}{% for w in words %}{{ j() }}{{ w }}{% endfor %}",
        "{% set c = cycler(<any>, <any>) %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
        "{% for g, all in rows | groupby('k') %}{{ g }}:{{ all | length }}{% endfor %}",
        "{{ dict(<members>, z=<int>) }}", "{# x }} #}", "{# %} #}", "{% raw %}{{ x }}{% endraw %}"],
    "of loop": ["index", "index0", "revindex", "first", "last", "length", "previtem", "nextitem", "cycle('a', 'b')",
                "depth0"],
    "block filter": ["", " | upper", " | trim | e"],
    "word filter": ["upper", "trim", "e", "replace('a', 'o')", "upper | trim"],
    "jump": ["{% break %}", "{% continue %}"],
    "members": ["d", "[[1, 2]]", "a=1", "d, b=2"],
    "macro": ["{% macro m(a<one><two>) %}<of macro><body>{% endmacro %}"],
    "one": ["", "=1"],
    "two": [", b=2", ", b=x"],
    "of macro": ["{{ a }}{{ b }}", "{{ varargs }}{{ a }}", "{{ kwargs }}{{ b }}", "{{ caller() if caller }}{{ a }}",
                 "{{ varargs | length }}{{ kwargs }}"],
    "macro call": ["m(1)", "m(1, 2)", "m(b=3)", "m(1, q=2)", "m(*ints[:2])", "m(**{'b': 4})", "m()", "m(1, 2, 3)",
                   "m.name", "m.arguments", "m.catch_kwargs", "m.caller"],
}
UNPRINTABLE = re.compile(r"(?i)m[ao]cro [ao]nonymous| object at 0x|<(function|generator|bound|class|loop|macro)|"
                         r"<(method|built-in)|dict_(items|keys|values)|range\(|markup\(|undefined")


def drawn(draw, symbol, depth):
    """A text of a symbol, with at most `depth` others of more than a line in each other."""
    more = GRAMMAR.get(f"{symbol} more", [])
    nests = more and depth > 0 and draw.random() < 0.7
    text = draw.choice(more if nests else GRAMMAR[symbol])
    return re.sub(r"<([a-z ]+)>",
                  lambda found: drawn(draw, found[1], depth - 1) if found[1] in GRAMMAR else found[0], text)


def case(source):
    try:
        text = environment().from_string(source).render(**json.loads(json.dumps(VARIABLES)))
    except Exception:  # whatever a template raises
        return {"template": source, "text": None}
    return None if UNPRINTABLE.search(text) else {"template": source, "text": text}


def cases_of(count, seed):
    draw, cases = random.Random(seed), []
    while len(cases) < count:
        source = drawn(draw, "body", 5)
        made = case(source) if 3 < len(source) < 400 else None
        if made:
            cases.append(made)
    return cases


def main():
    if len(sys.argv) == 4:
        path, cases = pathlib.Path(sys.argv[3]), cases_of(int(sys.argv[1]), int(sys.argv[2]))
    else:
        path, cases = pathlib.Path(__file__).with_name("random_templates.json"), cases_of(400, 1)
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in cases)
    path.write_text(f'{{"variables": {json.dumps(VARIABLES, ensure_ascii=False)},\n"cases": [\n{lines}\n]}}\n')
    print(f"{len(cases)} cases, {sum(one['text'] is None for one in cases)} refused")


if __name__ == "__main__":
    main()
