"""The commands of an executable of `trebuchet`, read from its help texts."""

import dataclasses
import re
import subprocess


@dataclasses.dataclass
class Option:
    """An option: `--port PORT`. The value is None for a flag; a value in brackets may be omitted."""

    name: str
    value: str | None
    help: str

    @property
    def has_optional_value(self):
        return self.value is not None and self.value.startswith("[")

    @property
    def kind(self):
        """What completes the value: "file", "folder", or None for any text."""
        word = (self.value or "").strip("[]")
        return {"FILE": "file", "PATH": "file", "DIR": "folder"}.get(word)

    @property
    def is_repeatable(self):
        return self.name == "--where" or "repeatable" in self.help


@dataclasses.dataclass
class Command:
    """A command such as `serve` or `admin documents`; the empty name is the program itself."""

    name: str
    summary: str
    usage: str
    options: list
    commands: list
    # Lines after the options; examples begin with two spaces.
    discussion: list

    def all(self):
        """The command and its subcommands, in the order of the help."""
        yield self
        for command in self.commands:
            yield from command.all()


class UnknownHelp(Exception):
    """A help text without the expected structure."""


ENTRY = re.compile(r"^  (\S.*?) {3,}(\S.*)$")


def sections(text, name):
    """Splits a help text: the summary, the usage, the entries of its lists, and the other lines."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) < 3 or not lines[2].startswith("usage: trebuchet "):
        raise UnknownHelp(f"the help of 'trebuchet {name}' has no usage in its third line")
    lists, rest, current = {"commands:": [], "options:": []}, [], None
    for line in lines[3:]:
        entry = ENTRY.match(line)
        if line in lists and not rest:
            current = line
        elif current and entry and (current == "commands:" or line.startswith("  --")):
            lists[current].append(entry.groups())
        elif line or rest:
            current = None
            rest.append(line)
        else:
            current = None
    return lines[0], lines[2].removeprefix("usage: "), lists["commands:"], lists["options:"], rest


def read(executable, environment=None, words=(), summary=None):
    """Runs `executable [WORD…] --help` for the program and each command, and returns the program as a Command."""
    name = " ".join(words)
    text = subprocess.run([executable, *words, "--help"], check=True, capture_output=True, text=True, env=environment).stdout
    first, usage, commands, options, discussion = sections(text, name)
    if words and not options:
        raise UnknownHelp(f"the help of 'trebuchet {name}' lists no options")
    if not words and not commands:
        raise UnknownHelp("the help of 'trebuchet' lists no commands")
    command = Command(
        name, summary or first.removeprefix("trebuchet: ").rstrip("."), usage,
        [Option(*(head.split(" ", 1) + [None])[:2], help) for head, help in options], [], discussion)
    for child, line in commands:
        command.commands.append(read(executable, environment, tuple(child.split(" ")), line))
    return command
