"""Reading and writing files: the one way to disk.

The order in which to read the modules:

=================  =====================================================================
``regular_file``   checks of a path, before it is opened and when it is; reading with a limit
``atomic_write``   writing to a temporary file and renaming it
``text_file``      text files, read and written through the two
``json_file``      JSON files, read strictly
=================  =====================================================================
"""

from clearhead.files.atomic_write import atomic_write
from clearhead.files.json_file import parse_json, read_json, read_json_array, write_json
from clearhead.files.regular_file import (
    open_regular_file,
    read_regular_file,
    regular_file_size,
)
from clearhead.files.text_file import read_text, text_lines, write_text

__all__ = [
    "atomic_write",
    "open_regular_file",
    "parse_json",
    "read_json",
    "read_json_array",
    "read_regular_file",
    "read_text",
    "regular_file_size",
    "text_lines",
    "write_json",
    "write_text",
]
