"""The manual page trebuchet(1), in roff, made from the command table."""

import datetime
import re


def escaped(text):
    for plain, roff in [("\\", "\\e"), ("-", "\\-"), ("'", "\\(aq"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")]:
        text = text.replace(plain, roff)
    return "\\&" + text if text.startswith(".") else text


def bold(text):
    return "\\fB" + escaped(text) + "\\fR"


def head(option):
    """`--port PORT`, with the value in italics."""
    return bold(option.name) + (" \\fI" + escaped(option.value) + "\\fR" if option.value else "")


def paragraphs(lines):
    """Prose is filled; lines that begin with two spaces are examples."""
    result, is_example = [], False
    for line in lines:
        if line.startswith("  ") != is_example:
            is_example = not is_example
            result += [".PP", ".RS 4", ".EX"] if is_example else [".EE", ".RE", ".PP"]
        if not line and not is_example:
            result.append(".PP")
        else:
            result.append(escaped(line.strip() if not is_example else line[2:]))
    if is_example:
        result += [".EE", ".RE"]
    # A paragraph that is followed by another one is empty.
    return [line for line, following in zip(result, result[1:] + [""]) if (line, following) != (".PP", ".PP")]


def section(command):
    lines = [f".SS trebuchet {escaped(command.name)}", escaped(sentence(command.summary)), ".PP"]
    usage = command.usage.split(" ")
    names = 1 + len(command.name.split(" "))
    lines += [bold(" ".join(usage[:names])) + " " + escaped(" ".join(usage[names:]))]
    for option in command.options:
        if option.name != "--help":
            lines += [".TP", head(option), escaped(option.help)]
    if command.discussion:
        lines += [".PP", *paragraphs(command.discussion)]
    return lines


def sentence(text):
    return text[:1].upper() + text[1:] + "."


FILES = [
    ("/etc/default/trebuchet", "The options of the packaged service, as the value of TREBUCHET_OPTIONS."),
    ("/var/lib/trebuchet", "The data of the packaged service."),
    ("trebuchet.service, trebuchet@.service",
     "The units of the service: one process, and several on the same data, each with its port as the name of the instance. One of them "
     "serves; the others are on standby."),
    ("trebuchet-backup.timer, trebuchet-backup.service",
     "A daily backup of the data in /var/lib/trebuchet/backups, of which the newest 14 are kept. The timer is not enabled at first."),
    ("~/.local/state/trebuchet", "The sessions of 'sign-in', or in $XDG_STATE_HOME/trebuchet; private files, one for each server."),
]


def page(program, version, epoch):
    date = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%d")
    lines = [
        f'.TH TREBUCHET 1 {date} "trebuchet {version}" "User Commands"',
        ".SH NAME", f"trebuchet \\- {escaped(program.summary)}",
        ".SH SYNOPSIS", bold("trebuchet") + " \\fIcommand\\fR [\\fIoptions\\fR]",
        ".SH DESCRIPTION",
        "The program is a server of distributed actors and of services such as sign\\-in, rooms and collections, and their client",
        "on the command line.",
        "An option is written as \\fB\\-\\-name\\fR \\fIvalue\\fR or \\fB\\-\\-name=\\fR\\fIvalue\\fR.",
        "Options and operands may be in any order; operands after \\fB\\-\\-\\fR may begin with a dash.",
        "Defaults are in parentheses.",
        "Every command has the option \\fB\\-\\-help\\fR.",
    ]
    for command in program.commands:
        lines += [".TP", bold(command.name), escaped(command.summary)]
    lines.append(".SH COMMANDS")
    for command in list(program.all())[1:]:
        # A command with subcommands has no options except --help.
        if not command.commands:
            lines += section(command)
        elif command.discussion:
            lines += [f".SS trebuchet {escaped(command.name)}", escaped(sentence(command.summary)), ".PP", *paragraphs(command.discussion)]
    lines += [
        ".SH EXIT STATUS", "0 on success, 1 after an error, 2 for wrong usage.",
        ".SH FILES",
    ]
    for name, text in FILES:
        lines += [".TP", f"\\fI{escaped(name)}\\fR", escaped(text)]
    lines += [".SH SEE ALSO", ".BR systemctl (1),", ".BR journalctl (1)"]
    return re.sub(r"\n\.PP\n(?=\.(?:SH|SS|TP|PP)\b)", "\n", "\n".join(lines)) + "\n"
