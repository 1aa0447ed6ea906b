"""Every format that clearhead reads from a file."""

from __future__ import annotations

from tests.hostile.formats.corpora import CONLLU, COREFERENCE, TEXT
from tests.hostile.formats.gguf import GGUF
from tests.hostile.formats.model_folder import MODEL_FOLDER
from tests.hostile.formats.role_counts import ROLE_COUNTS
from tests.hostile.formats.run_folder import RUN_FOLDER
from tests.hostile.formats.safetensors import SAFETENSORS
from tests.hostile.formats.template import CHAT_TEMPLATE
from tests.hostile.formats.tokenizer import TOKENIZER
from tests.hostile.formats.trace import TRACE
from tests.hostile.formats.wheel import WHEEL
from tests.hostile.mutant import Format

FORMATS: dict[str, Format] = {
    format.name: format
    for format in (
        GGUF, SAFETENSORS, MODEL_FOLDER, TOKENIZER, TRACE, ROLE_COUNTS, CONLLU, COREFERENCE, TEXT,
        WHEEL, RUN_FOLDER, CHAT_TEMPLATE,
    )
}  # fmt: skip
