"""A file of measured sections, of which some are measured again."""
import re

from tables.text import wrapped


class Document:
    """What the file holds when this begins: the line of its machine, and {heading: text}."""

    def __init__(self, path, title):
        self.path, self.title = path, title
        self.line, self.texts = "", {}
        if not path.exists():
            return
        head, *parts = re.split(r"^## ", path.read_text(), flags=re.M)
        measured = re.search(r"^Measured (.*?)\n\n", head, flags=re.M | re.S)
        self.line = measured[1].replace("\n", " ") if measured else "before"
        self.texts = {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip() for part in parts}

    def write(self, line, headings, fresh):
        """In the order of headings: what is fresh, else what the file held and from when it is."""
        texts = {heading: fresh.get(heading) or self.kept(heading)
                 for heading in headings if heading in fresh or heading in self.texts}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(
            f"# {self.title}\n\n"
            "Written by `tests/bench/write_tables`. A section that was not measured again says from\nwhen it is.\n\n"
            + wrapped(f"Measured {line}") + "\n\n"
            + "\n\n".join(f"## {heading}\n\n{text}" for heading, text in texts.items()) + "\n")

    def kept(self, heading):
        text = self.texts[heading]
        return text if text.startswith("Kept from ") else wrapped(f"Kept from {self.line}") + f"\n\n{text}"
