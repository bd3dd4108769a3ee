"""Takes the files and commands out of a document, so that a test can build and run what it shows.

    python3 .ci/snippets.py DOCUMENT FOLDER

A line `<!-- file: NAME -->` before a block of code writes it to FOLDER/NAME; `<!-- run -->` appends it to
FOLDER/commands.sh, in the order of the document. PATH/TO/TELERING in either becomes this project's folder.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^<!-- (?:file: (?P<file>[\w./-]+)|(?P<run>run)) -->\n+```[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)


def main(document, folder):
    folder = Path(folder)
    commands = "set -euxo pipefail\n"
    found = 0
    for block in BLOCK.finditer(Path(document).read_text()):
        found += 1
        text = block["text"].replace("PATH/TO/TELERING", str(ROOT))
        if block["run"]:
            commands += text
            continue
        path = folder / block["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "commands.sh").write_text(commands)
    print(f"{found} blocks out of {document}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
