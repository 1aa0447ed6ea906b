"""Chat templates: rendered within one second and 100 MB, or refused."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from clearhead.files.text_file import read_text
from clearhead.text.chat.template import ChatTemplate
from tests.hostile.mutant import Format

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Where is 7 × 3?\n"},
    {"role": "assistant", "content": "21", "tool_calls": [{"name": "f", "arguments": {"x": 1}}]},
]
TEMPLATES = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "{%- set ns = namespace(found=false, n=0) -%}"
    "{% macro tool(t) %}{{ t.name }}({{ t.arguments|tojson }}){% endmacro %}"
    "{% for m in messages %}{% if loop.first and m.role == 'system' %}{{ bos_token }}"
    "{{ m.content|trim }}{% else %}{% set ns.n = ns.n + 1 %}"
    "[{{ loop.index0 }}] {{ m.content.strip() }}"
    "{% for c in m.tool_calls or [] %}{{ tool(c) }}{% endfor %}{% endif %}{% endfor %}",
)


def use(folder: Path, random: Random) -> None:
    """Renders the messages."""
    source = read_text(folder / "chat_template.jinja")
    assert isinstance(ChatTemplate(source, bos_token="<s>").render(MESSAGES), str)


CHAT_TEMPLATE = Format(
    "chat template", lambda: [{"chat_template.jinja": t.encode()} for t in TEMPLATES], use,
    weight=0.3, seconds=1.5, megabytes=100.0,
)  # fmt: skip
