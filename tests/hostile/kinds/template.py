"""Changes of chat templates: pieces of Jinja put in, taken out, repeated and nested."""

from __future__ import annotations

import re
from random import Random

from tests.hostile.kinds.raw import RAW

PIECES = (
    "{% set l = [] %}{% for i in range(60) %}{% set l = [l, l] %}{% endfor %}",
    "{% set ns = namespace(l=[]) %}"
    "{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}",
    "{{ ns.l }}",
    "{{ l|tojson }}",
    "{{ l == [l] }}",
    "{{ l in [[l]] }}",
    "{{ l|string|length }}",
    "{{ ns.l|tojson }}",
    "{{ ns.l ~ '' }}",
    "{{ ns.l == ns.l[0] }}",
    "{{ [ns.l, ns.l]|sort }}",
    "{{ ns.l|join }}",
    "{{ ns.l|unique|list }}",
    "{{ ns.l|pprint }}",
    "{{ {'a': ns.l}|tojson }}",
    "{{ ns.l|upper }}",
    "{{ ns.l|hash }}",
    "{% set t = namespace(t='ab') %}"
    "{% for i in range(40) %}{% set t.t = t.t ~ t.t %}{% endfor %}{{ t.t }}",
    "{% set u = namespace(t='abcd') %}{% for i in range(60) %}"
    "{% set u.t = u.t.encode().decode('utf-16') ~ u.t %}{% endfor %}",
    "{{ range(10000000)|sort }}",
    "{{ range(10**9)|list|length }}",
    "{{ 'x' * 10**9 }}",
    "{{ 10**10**7 }}",
    "{{ [0] * 10**9 }}",
    "{{ 'a'.ljust(10**9) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ messages.__class__ }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ self }}",
    "{{ lipsum(1000000) }}",
    "{{ cycler }}",
    "{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}",
    "{% for a in range(999999) %}{% for b in range(999999) %}x{% endfor %}{% endfor %}",
    "{{ messages|tojson(indent=1000000) }}",
    "{{ 'a'|center(100000000) }}",
    "{{ ('a' * 9999)|replace('a', 'b' * 9999) }}",
    "{{ '<a>' * 9999|striptags }}",
    "{{ ('(' * 3000) }}",
    "{{ " + "(" * 300 + "1" + ")" * 300 + " }}",
    "{{ " + "-" * 5000 + "1 }}",
    "{{ raise_exception('no') }}",
    "{{ strftime_now('%Y' * 100000) }}",
    "{{ none.x }}",
    "{{ 1 // 0 }}",
    "{{ undefined_thing() }}",
    "{{ 'x'.join(range(99999)|map('string')) }}",
    "{{ messages[99] }}",
    "{{ messages[0].content[::-1] * 3 }}",
    "{% include 'x' %}",
    "{% import 'os' as os %}",
    "{% extends 'x' %}",
    "{{ 1e308 * 10 }}",
    "{{ '\\ud800' }}",
    "{{ (1 << 10**9) }}",
    "{{ 2 ** 2 ** 30 }}",
    "{% set x = messages.append(messages) %}{{ messages }}",
    "{{ messages|map(attribute='role')|list }}",
    "{{ 5|round(10**9) }}",
    "{{ range(3)|batch(10**9, 0)|list }}",
    "{{ range(10**7)|slice(10**6)|list }}",
    "{{ 'a,' * 999999|wordwrap(1) }}",
    "{{ dict.fromkeys(range(10**7)) }}",
    "{{ ''.join(['a'] * 10**8) }}",
    "{{ 'é'.encode('utf-32').decode('latin-1') * 10**6 }}",
    "{{ ('a' * 10**6).split('a') }}",
    "{{ '1' * 5000|int }}",
    "{{ ('9' * 5000)|int }}",
    "{{ ('9' * 100000)|float }}",
    "{{ '\x1b[2J' }}",
)

_PARTS = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\w+|\s+|.", re.DOTALL)


class _Template:
    """Each piece before, inside and after the template; then parts lost, doubled and swapped."""

    def steps(self, data: bytes) -> int:
        return 3 * len(PIECES)

    def step(self, data: bytes, number: int) -> bytes:
        text, piece = data.decode(), PIECES[number // 3]
        if number % 3 == 0:
            return (piece + text).encode("utf-8", "surrogatepass")
        if number % 3 == 1:
            return (text + "".join(PIECES[:2]) + piece).encode("utf-8", "surrogatepass")
        inside = text.find("%}") + 2
        return (text[:inside] + piece + text[inside:]).encode("utf-8", "surrogatepass")

    def changed(self, data: bytes, random: Random) -> bytes:
        parts = _PARTS.findall(data.decode("utf-8", "replace")) or [""]
        place = random.randrange(len(parts))
        match random.randrange(6):
            case 0:
                del parts[place]
            case 1:
                parts.insert(place, random.choice(parts))
            case 2:
                other = random.randrange(len(parts))
                parts[place], parts[other] = parts[other], parts[place]
            case 3:
                return RAW.changed(data, random)
            case _:
                for _ in range(random.choice((1, 1, 2, 3))):
                    parts.insert(random.randrange(len(parts) + 1), random.choice(PIECES))
        return "".join(parts).encode("utf-8", "surrogatepass")


TEMPLATE = _Template()
