"""Chats: which tokens are answers, compared with rendering every prefix."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.text.chat.template import ChatTemplate
from clearhead.text.subwords.training import train_bpe
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.chats import chat_source, checked_chat, examples_of, read_chats

CHATML = (
    "{% for m in messages %}{{ '<bos>' + m.role + '\\n' + m.content + '<eos>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<bos>assistant\\n' }}{% endif %}"
)
DEFAULT_SYSTEM = (
    "{% if messages and messages[0].role != 'system' %}{{ '<bos>system\\nBe kind.<eos>\\n' }}"
    "{% endif %}" + CHATML
)
BRACKETS = (
    "{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content + '<eos>' }}{% else %}{{ m.content }}"
    "{% endif %}{% endfor %}"
)
FORGETFUL = (  # only the last answer keeps its thoughts
    "{% for m in messages %}{{ '<bos>' + m.role + ':' }}"
    "{{ m.content if loop.last or m.role == 'user' else m.content.split('#')[-1] }}<eos>"
    "{% endfor %}{% if add_generation_prompt %}{{ '<bos>assistant:' }}{% endif %}"
)
TEMPLATES = {"chatml": CHATML, "system": DEFAULT_SYSTEM, "brackets": BRACKETS}
WORDS = [
    "the",
    "garden",
    "is",
    "wet",
    "today",
    "and",
    "we",
    "look",
    "at",
    "tomatoes,",
    "3",
    "or",
    "5",
    "of",
    "them!",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe([" ".join(WORDS) * 30, "user assistant system [INST] [/INST]\n" * 9], 320)


def made_chat(seed: int) -> list[dict[str, str]]:
    generator = random.Random(seed)

    def words() -> str:
        return " ".join(generator.choices(WORDS, k=generator.randint(1, 9)))

    chat = [{"role": "system", "content": words()}] if generator.random() < 0.5 else []
    for _ in range(generator.randint(1, 4)):
        chat += [{"role": "user", "content": words()}, {"role": "assistant", "content": words()}]
    return chat


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize("name", TEMPLATES)
def test_answers_are_what_follows_each_prompt(tokenizer: Tokenizer, name: str, seed: int) -> None:
    """Independently: texts of prefixes are cut from each other, character by character."""
    template, chat = ChatTemplate(TEMPLATES[name]), made_chat(seed)
    eos = tokenizer.specials.eos
    assert eos is not None
    (example,) = examples_of(chat, template, tokenizer, [eos])
    text = template.render(chat, add_generation_prompt=False)
    assert example.ids == tokenizer.encode(text, special=False)
    answers = []
    for place, message in enumerate(chat):
        if message["role"] == "assistant":
            asked = template.render(chat[:place], add_generation_prompt=True)
            said = template.render(chat[: place + 1], add_generation_prompt=False)
            answers.append(said.removeprefix(asked).rstrip("\n"))  # up to what ends it
    runs, run = [], []
    for id, learned in zip([*example.ids, 0], [*example.learned, False], strict=True):
        if learned:
            run.append(id)
        elif run:
            runs.append(tokenizer.decode(run, skip_special=False))
            run = []
    assert [r.strip() for r in runs] == [a.strip() for a in answers]
    assert all(answer.endswith("<eos>") for answer in runs)


def test_a_template_that_rewrites_gives_an_example_for_each_answer(tokenizer: Tokenizer) -> None:
    said = (("user", "is it wet"), ("assistant", "hm#today"), ("user", "and"))
    chat = [
        {"role": role, "content": content} for role, content in (*said, ("assistant", "we#look"))
    ]
    eos = tokenizer.specials.eos
    assert eos is not None
    examples = examples_of(chat, ChatTemplate(FORGETFUL), tokenizer, [eos])
    texts = [tokenizer.decode(example.ids, skip_special=False) for example in examples]
    assert texts[0].endswith("hm#today<eos>") and "hm#" not in texts[1]
    learned = [[id for id, on in zip(*example, strict=True) if on] for example in examples]
    assert [tokenizer.decode(ids, skip_special=False) for ids in learned] == [
        "hm#today<eos>", "we#look<eos>",
    ]  # fmt: skip


def test_a_template_without_places_for_answers(tokenizer: Tokenizer) -> None:
    template = ChatTemplate("{{ messages | length }}")
    with pytest.raises(InputError, match="does not write message 1 behind the prompt for it"):
        examples_of(made_chat(3)[-2:], template, tokenizer, [2])


def test_files(tmp_path: Path) -> None:
    chat = made_chat(5)
    path = tmp_path / "chats.jsonl"
    path.write_text(json.dumps({"messages": chat, "id": 3}) + "\n\n" + json.dumps(chat) + "\n")
    assert read_chats([path]) == [chat, chat]
    assert chat_source([path]).paths == (str(path),)
    assert chat_source([chat, {"messages": chat}]).content == [chat, chat]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1"),
        ("{}", "a chat is a list of messages"),
        ("[]", "a chat is a list of messages"),
        ("[3]", "message 0 of a chat is"),
        ('[{"role": "user", "content": "a"}]', "has no answer to learn from"),
        ("", "holds no chats"),
    ],
)
def test_lines_that_are_no_chats(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=message):
        read_chats([path])


@pytest.mark.parametrize("given", [["a text"], [3], [["a"]]])
def test_what_is_no_chat(given: Any) -> None:
    with pytest.raises(InputError):
        chat_source(given)
    with pytest.raises(InputError):
        checked_chat(given)
