"""Texts of many kinds, generated: scripts, emoji, code, white space, numbers, broken habits."""

from __future__ import annotations

import random
from collections.abc import Callable

ALPHABETS = {
    "latin": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "accents": "àâäçéèêëîïôöùûüÿñßøåæœšžčřđłőąęğışțÀÉÎÕÜÇÑ",
    "greek": "αβγδεζηθικλμνξοπρστυφχψωάέήίόύώΑΒΓΔΩ",
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщъыьэюяёїєґАБВГЯ",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשתםןץףך",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهويءآأؤإئةى",
    "devanagari": "अआइईउऊकखगघचछजटठडतथदनपबमयरलवशसह" + "ािीुूेैोौंः्",
    "bengali": "অআইঈকখগঘচছজটডতদনপবমযরলশসহ" + "ািীুেো্ং",
    "tamil": "அஆஇஈஉகஙசஞடணதநபமயரலவ" + "ாிீுூெேொ்",
    "thai": "กขคงจฉชซญดตถทนบปผพฟมยรลวสหอ" + "ะาิีึืุูเแโไ่้",
    "georgian": "აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ",
    "han": "你好世界学习注意力模型语言文字天地人大小中国日本東京龍書愛車𠮷𪚥",
    "kana": "あいうえおかきくけこさしすせそがぎぐパピプペポアイウエオンー",
    "hangul": "가나다라마바사아자차카타파하한국어글자힣뷁",
    "jamo": "ᄀᄂᄃ라ᅢᅣᅥᆨᆫᆯ",
    "ethiopic": "ሀለሐመሠረሰቀበተኀነአከወዐዘየደገጠ",
}
ENGLISH = ["the", "kids", "were", "scared", "of", "lions", "so", "they", "left",
           "right", "away", "attention", "is", "all", "you", "need"]  # fmt: skip
EMOJI = ["😀", "🎉", "❤️", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦",
         "🇩🇪", "🇯🇵", "🏳️‍🌈", "☃️", "1️⃣", "🧑🏿‍🚀", "✨", "🤖"]  # fmt: skip
SPACES = [
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r\n",
    "\n\n",
    " \n ",
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u200b",
]
MARKS = list(".,;:!?…—–-'\"’“”«»()[]{}<>/\\|@#$%^&*+=~`_§¶·•¿¡。、「」")
NUMBERS = [
    "0", "7", "42", "007", "1234", "12345678", "3.14", "1,000,000", "-5", "1e-9", "0xFF",
    "½", "²", "³", "Ⅷ", "①", "٣٤٥", "१२३", "𝟙𝟚", "４２", "2021-03-03",
]  # fmt: skip
CODE = [
    "def f(x: int) -> int:\n    return x ** 2\n",
    "for (int i = 0; i < n; ++i) { sum += a[i]; }",
    "SELECT * FROM t WHERE a >= 10 AND b <> 'x';",
    '<div class="a b">&amp; text</div>',
    '{"key": [1, 2.5, null, true], "nested": {"a": "b\\n"}}',
    "if [[ -z \"$HOME\" ]]; then\n\techo 'none' >&2\nfi",
    "x = lambda *a, **k: {**k, 'a': a[::-1]}",
    "\\frac{1}{\\sqrt{d}} \\sum_{i=0}^{n} x_i^2",
    "https://example.org/a/b?c=d&e=%20f#g user@example.org",
    "    indented\n        more\n\tand a tab",
]
ODDITIES = [
    "", " ", "  ", "\n", "\t\t", "don't won't I'LL we'Ve it'S y'all 'tis rock'n'roll",
    "e\u0301 a\u0308 n\u0303 q\u0323\u0307", "Z\u0351\u036b\u0343\u036aalgo\u0321\u034a",
    "\ufeffbom",
    "\u202eright to left\u202c", "a\u200db\u200cc", "ﬁ ﬂ ﬀ ℌ ℡ ㎏ ™", "\x00\x01\x7f",
    "\ufffd", "\ue000",
    "<|im_start|>user\nhi<|im_end|>\n", "<|endoftext|>", "[CLS] a [SEP] [MASK] [PAD] [UNK]",
    "<s> </s> <unk> <pad>", "<0x0A> <0xE4>", "▁meta▁space▁", "Ġbyte Ċ level", "##ing ##",
    "a" * 300, "ab " * 100, "!" * 60, " " * 70, "\n" * 33, "9" * 50, "İstanbul ıǅ ẞ ŉ",
    "한국어 조합 ᄒ\u1161ᆫ",
    "    12 and   7 and\t8 and\n9", "price:  100 $", "v1.2.3-rc4+build.5",
]  # fmt: skip


def varied_strings(count: int = 1200, seed: int = 3) -> list[str]:
    """``count`` different texts, the same ones for the same seed."""
    chance = random.Random(seed)
    texts = dict.fromkeys(ODDITIES + CODE)
    while len(texts) < count:
        texts[_sentence(chance)] = None
    return list(texts)[:count]


def _sentence(chance: random.Random) -> str:
    parts = []
    own = chance.choice([*ALPHABETS, None])
    for _ in range(chance.randint(1, 12)):
        maker = chance.choices(_MAKERS, weights=[8, 1, 1, 1, 1, 1])[0]
        parts.append(maker(chance, own))
        parts.append(chance.choices([" ", chance.choice(SPACES), ""], weights=[6, 2, 1])[0])
    return "".join(parts)


def _word(chance: random.Random, own: str | None) -> str:
    letters = ALPHABETS[own if own and chance.random() < 0.8 else chance.choice(list(ALPHABETS))]
    word = "".join(chance.choices(letters, k=chance.randint(1, 9)))
    return chance.choice([word, word, word.lower(), word.title(), word.upper()])


def _english(chance: random.Random, own: str | None) -> str:
    return " ".join(chance.choices(ENGLISH, k=chance.randint(1, 6)))


def _emoji(chance: random.Random, own: str | None) -> str:
    return "".join(chance.choices(EMOJI, k=chance.randint(1, 3)))


def _number(chance: random.Random, own: str | None) -> str:
    return chance.choice([chance.choice(NUMBERS), str(chance.randrange(10**6))])


def _marks(chance: random.Random, own: str | None) -> str:
    return "".join(chance.choices(MARKS, k=chance.randint(1, 4)))


def _any_character(chance: random.Random, own: str | None) -> str:
    planes = [
        (0x20, 0x2FF),
        (0x370, 0x1FFF),
        (0x2000, 0xD7FF),
        (0xE000, 0xFFFD),
        (0x10000, 0x1FAFF),
    ]
    return "".join(chr(chance.randint(*chance.choice(planes))) for _ in range(chance.randint(1, 4)))


_MAKERS: list[Callable[[random.Random, str | None], str]] = [
    _word, _english, _emoji, _number, _marks, _any_character,
]  # fmt: skip
