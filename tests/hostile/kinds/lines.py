"""Changes of tables and texts: each cell replaced by each bad one; lines lost, doubled, moved."""

from __future__ import annotations

from random import Random

BAD = (
    "",
    "_",
    "0",
    "00",
    "-1",
    "1",
    "2",
    "3-2",
    "1-2",
    "1-1",
    "2-3",
    "5-9",
    "0-1",
    "1.1",
    ".",
    "-",
    "9" * 5000,
    "1-" + "9" * 5000,
    "9" * 5000 + "-" + "9" * 5001,
    "1e9",
    "4:2",
    "0:0",
    "0:1",
    "-1:3",
    "0:999999",
    "9" * 5000 + ":1",
    "١",
    "²",
    "٣:٤",
    "x",
    " ",
    "\t",
    "\x00",
    "\x1b[31m",
    "\u202e",
    "a" * 50_000,
    "\r",
    "\x0b",
    "\x85",
    "\u2028",
    "é́́́́",
    "😀",
    "\ufeff",
    "<script>",
    "# text = ",
    "#",
    "=",
    "text\x1c",
    ". " * 5000,
    "A. " * 3000,
    "(" * 3000,
    "1/" * 2000,
    "'" * 3000,
    "Dr. " * 2000,
    "１２",
    "1:" * 20,
)


def cells(data: bytes) -> list[list[str]]:
    return [line.split("\t") for line in data.decode("utf-8", "replace").split("\n")]


def text_of(rows: list[list[str]]) -> bytes:
    return "\n".join("\t".join(row) for row in rows).encode("utf-8", "surrogatepass")


class _Lines:
    def steps(self, data: bytes) -> int:
        return sum(len(row) for row in cells(data)) * len(BAD)

    def step(self, data: bytes, number: int) -> bytes:
        rows, which = cells(data), number // len(BAD)
        for row in rows:
            if which < len(row):
                row[which] = BAD[number % len(BAD)]
                return text_of(rows)
            which -= len(row)
        raise IndexError(number)

    def changed(self, data: bytes, random: Random) -> bytes:
        rows = cells(data)
        row = random.randrange(len(rows))
        match random.randrange(9):
            case 0:
                rows.insert(row, list(random.choice(rows)))
            case 1:
                del rows[row]
            case 2:
                rows[row], rows[-1] = rows[-1], rows[row]
            case 3:
                rows[row].append(random.choice(BAD))
            case 4:
                rows[row].pop()
            case 5:
                rows.insert(row, [""])
            case 6:
                other = random.choice(rows)
                column = random.randrange(len(rows[row]))
                rows[row][column] = other[min(column, len(other) - 1)]
            case _:
                rows[row][random.randrange(len(rows[row]))] = random.choice(BAD)
        rows = [row or [""] for row in rows] or [[""]]
        return text_of(rows)


LINES = _Lines()
