from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from clearhead.errors import InputError
from clearhead.text import ChatTemplate, train_bpe
from clearhead.text.chat.template import _checked
from tests.shared.gguf_metadata import SENTENCES
from tests.text.chat import realistic

CHATML = (
    "{% for message in messages %}\n"
    "    {% if message['role'] not in ['system', 'user', 'assistant'] %}\n"
    "        {{- raise_exception('Unknown role: ' + message['role']) }}\n"
    "    {% endif %}\n"
    "    {{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content|trim ~ eos_token ~ '\\n' -}}\n"
    "{% endfor %}\n"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
MESSAGES = [
    {"role": "system", "content": "You are brief."},
    {"role": "user", "content": " Who is <they>? «é» "},
    {"role": "assistant", "content": "The kids."},
]


def test_messages_become_one_text() -> None:
    text = ChatTemplate(CHATML).render(MESSAGES[1:2], eos_token="<|im_end|>")
    assert text == "<|im_start|>user\nWho is <they>? «é»<|im_end|>\n<|im_start|>assistant\n"
    bare = ChatTemplate(CHATML).render([], add_generation_prompt=False)
    assert bare == ""


@pytest.mark.parametrize(
    "source",
    [
        CHATML,
        "{{ messages|tojson }}{{ messages[0]|tojson(indent=2) }}",
        "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}"
        "{% if loop.last %}{{ loop.length }}{% break %}{% endif %}{% endfor %}",
        "{% set ns = namespace(n=0) %}{% for m in messages if m.role != 'system' %}"
        "{% set ns.n = ns.n + 1 %}{{ ns.n ~ ':' ~ m['content'] }}{% endfor %}",
        "{{ messages|map(attribute='role')|join(', ') }} {{ messages[1:]|length }}",
        "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ bos_token }}",
        "{% macro say(m) %}[{{ m.role|upper }}]{% endmacro %}{% for m in messages %}{{ say(m) }}"
        "{% endfor %}{{ 'a-b'.split('-')[-1] }}{{ 'x' * 3 }}{{ 7 % 3 }}{{ '%s!' % 'a' }}",
        "{% generation %}{{ messages[2].content.replace('kids', 'lions') }}{% endgeneration %}",
        "{% if tools %}tools{% endif %}{{ messages[0].get('name', 'nobody') }}{{ 2 ** 5 }}",
        "{% for k, v in messages[0].items() %}{{ k }}={{ v|length }};{% endfor %}",
    ],
)
def test_the_same_text_as_transformers(source: str) -> None:
    tokenizer = train_bpe(SENTENCES, 300)
    tokenizer.chat_template = source
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend, bos_token="<bos>", eos_token="<eos>"
    )
    for prompt in (True, False):
        expected = theirs.apply_chat_template(
            MESSAGES, chat_template=source, tokenize=False, add_generation_prompt=prompt
        )
        ours = ChatTemplate.of(tokenizer).render(MESSAGES, add_generation_prompt=prompt)
        assert ours == expected


CONVERSATIONS: list[tuple[list[dict[str, Any]], Any]] = [
    (realistic.PLAIN, None),
    (realistic.PLAIN[1:], realistic.TOOLS),
    (realistic.CALLS, realistic.TOOLS),
    (realistic.CALLS[:1], None),
]


@pytest.mark.parametrize("name", list(realistic.TEMPLATES))
def test_templates_of_the_families_give_the_text_of_transformers(name: str) -> None:
    source = realistic.TEMPLATES[name]
    tokenizer = train_bpe(SENTENCES, 300)
    theirs = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend, bos_token="<bos>", eos_token="<eos>"
    )
    ours = ChatTemplate(source, bos_token="<bos>", eos_token="<eos>")
    rendered = 0
    for messages, tools in CONVERSATIONS:
        for prompt in (True, False):
            try:
                expected = theirs.apply_chat_template(
                    messages, tools=tools, chat_template=source, tokenize=False,
                    add_generation_prompt=prompt,
                )  # fmt: skip
            except Exception:
                with pytest.raises(InputError):
                    ours.render(messages, tools=tools, add_generation_prompt=prompt)
                continue
            found = ours.render(messages, tools=tools, add_generation_prompt=prompt)
            assert found == expected
            rendered += 1
    assert rendered >= 2


def test_the_clock() -> None:
    assert ChatTemplate("{{ strftime_now('%Y') }}").render([]) == str(datetime.now().year)


def test_a_model_that_does_not_chat() -> None:
    with pytest.raises(InputError, match="has no chat template"):
        ChatTemplate.of(train_bpe(SENTENCES, 300))


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ("hi", "messages is a list of .* str came"),
        ({"role": "user"}, "dict came"),
        (None, "NoneType came"),
        ([{"role": "user", "content": "a"}, "b"], "message 1 should be .* and is 'b'"),
        ([{"content": "a"}], "message 0 should be"),
        ([{"role": 3, "content": "a"}], "message 0 should be"),
    ],
)
def test_messages_that_are_none(messages: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _checked(messages)


def test_an_unknown_role_is_the_templates_word() -> None:
    with pytest.raises(InputError, match="refuses these messages: Unknown role: wizard"):
        ChatTemplate(CHATML).render([{"role": "wizard", "content": "a"}])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{% for", "the chat template is broken"),
        ("a\n{% endfor %}", r"broken \(line 2\)"),
        ("{{ a.b.c }}", "asks for something that is not there: 'a' is undefined"),
        ("{{ messages[0].content.text }}{{ messages[9].role }}", "asks for something"),
        ("{{ 1 / 0 }}", "fails on these messages: division by zero"),
        ("{{ messages[0].content + 3 }}", "fails on these messages"),
        ("{% include 'x' %}", "broken .line 1.: chat templates have no include"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ cycler.__init__.__globals__.os }}", "unsafe"),
        ("{{ 'a'.translate({97: 'b'}) }}", "unsafe"),
        ("{{ lipsum() }}", "'lipsum' is undefined"),
        ("{{ messages[0]|tojson(indent=99999) }}", "indents JSON by 99999"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "calls itself without end"),
    ],
)
def test_broken_templates(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ChatTemplate(source).render(MESSAGES)


GROW = "{% set ns = namespace(x='aaaa') %}{% for i in range(99) %}"


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(999999999) %}x{% endfor %}",
        "{% for a in 'x' * 999 %}{% for b in 'x' * 999 %}{% for c in 'x' * 999 %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
        "{{ f(60) }}",
        "{{ range(10 ** 9)|list }}",
        "{{ 'x' * 10 ** 9 }}",
        "{{ [1] * 10 ** 9 }}",
        GROW + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        GROW + "{% set ns.x = [ns.x ~ ns.x][0] %}{% endfor %}",
        GROW + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
        GROW + "{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}",
        GROW + "{% set ns.x = ns.x.replace('a', ns.x) %}{% endfor %}",
        "{{ 'x'.center(10 ** 9) }}",
        "{{ 'x'|center(1000000000) }}",
        "{{ 'x'|center(width=1000000000) }}",
        "{{ messages|map('center', 1000000000)|list }}",
        "{{ (['y' * 1000000] * 1000)|join }}",
        "{{ ''.join(['y' * 1000000] * 1000) }}",
        "{{ ['y', 'z'] | join('x' * 10 ** 7) | replace('x', 'xyz') }}",
    ],
)
def test_templates_that_explode(source: str) -> None:
    with pytest.raises(InputError, match="far more than any conversation needs"):
        ChatTemplate(source).render(MESSAGES)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ 10 ** 10 ** 9 }}", "a number beyond any use"),
        (
            "{% set ns = namespace(x=7) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}"
            "{% endfor %}",
            "a number beyond any use",
        ),
        ("{{ 'x'|indent(1000000000) }}", "formats a field wider"),
        ("{{ '%1000000000d' % 1 }}", "formats a field wider"),
        ("{{ '%*d' % (1000000000, 1) }}", "formats a field wider"),
        ("{{ '{:1000000000d}'.format(1) }}", "formats a field wider"),
        ("{{ '{:{w}d}'.format(1, w=1000000000) }}", "formats a field wider"),
    ],
)
def test_numbers_and_fields_that_explode(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ChatTemplate(source).render(MESSAGES)


DOUBLED = (
    "{% set ns = namespace(x=['a']) %}"
    "{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"
)


@pytest.mark.parametrize(
    "read",
    ["ns.x", "ns.x|tojson", "ns.x ~ ''", "ns.x == [ns.x]", "ns.x in [ns.x, 1]", "[ns.x, ns.x]|sort",
     "[ns.x]|join", "ns.x < [ns.x]", "ns.x|string", "'%s' % [ns.x]", "'{}'.format(ns.x)",
     "ns.x is eq([1])", "messages|map('replace', 'a', ns.x)|list", "raise_exception(ns.x)",
     "[ns.x]|unique|list", "ns.x != 3 != ns.x"],
)  # fmt: skip
def test_a_list_that_holds_itself_twice_sixty_times_over(read: str) -> None:
    with pytest.raises(InputError, match=r"far more|unhashable"):
        ChatTemplate(DOUBLED + "{{ " + read + " }}").render(MESSAGES)


def test_bytes_are_out_of_reach() -> None:
    source = GROW + "{% set ns.x = ns.x.encode().decode('utf-16') %}{% endfor %}"
    with pytest.raises(InputError, match="'encode' of 'str' object is unsafe"):
        ChatTemplate(source).render(MESSAGES)


def test_other_objects_in_messages() -> None:
    with pytest.raises(InputError, match="reads a datetime as if it were data"):
        ChatTemplate("{{ messages[0].date }}").render([{"role": "user", "date": datetime.now()}])


def test_an_error_is_no_longer_than_a_line() -> None:
    with pytest.raises(InputError, match=r"aaa …$"):
        ChatTemplate("{{ raise_exception('a' * 99999) }}").render([])


def test_a_long_conversation_is_no_attack() -> None:
    long = [{"role": "user", "content": "word " * 2000}] * 300
    text = ChatTemplate(CHATML).render(long, eos_token="<eos>")
    assert len(text) > 2_900_000
    for source in (realistic.QWEN_TOOLS, realistic.PHI):
        huge = [{"role": "user", "content": "wörd " * 20_000}] * 60
        assert len(ChatTemplate(source, eos_token="").render(huge)) > 5_900_000
