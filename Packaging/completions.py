"""Completions for bash, zsh and fish, made from the command table.

Each script finds the command in the words before the cursor: the longest name of a command whose parts are among them, in order.
"""


def quoted(text):
    """A word in single quotes for bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def quoted_for_fish(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def last_word(command):
    return command.name.split(" ")[-1]


def named(program):
    return [command for command in program.all() if command.name]


def bash(program):
    names = "|".join(quoted(command.name) for command in named(program))
    lines = [
        "# Completion of trebuchet for bash.",
        "_trebuchet() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} at= word commands= options=",
        "    COMPREPLY=()",
        '    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        '        case "${at:+$at }$word" in',
        f"            {names}) at=\"${{at:+$at }}$word\" ;;",
        "        esac",
        "    done",
        "    case $at in",
    ]
    for command in program.all():
        children = " ".join(last_word(child) for child in command.commands)
        options = " ".join(option.name for option in command.options) or "--help"
        lines.append(f"        {quoted(command.name)})")
        if children:
            lines.append(f"            commands={quoted(children)}")
        lines.append(f"            options={quoted(options)}")
        for kind, action in (("file", "files -f"), ("folder", "files -d"), (None, "return")):
            values = [option.name for option in command.options if option.value and option.kind == kind and not option.has_optional_value]
            if values:
                finish = "return" if action == "return" else f"_trebuchet_{action} \"$current\"; return"
                lines.append(f"            case $previous in {'|'.join(values)}) {finish} ;; esac")
        lines.append("            ;;")
    lines += [
        "    esac",
        "    if [[ $current == -* ]]; then",
        '        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")',
        "    elif [[ $commands ]]; then",
        '        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")',
        "    else",
        '        _trebuchet_files -f "$current"',
        "    fi",
        "}",
        "_trebuchet_files() {",
        "    compopt -o filenames 2>/dev/null",
        '    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")',
        "}",
        "complete -F _trebuchet trebuchet",
    ]
    return "\n".join(lines) + "\n"


def zsh(program):
    def described(text):
        return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")

    names = "|".join(quoted(command.name) for command in named(program))
    lines = [
        "#compdef trebuchet",
        "",
        "_trebuchet() {",
        "    local at= word",
        "    local -a commands",
        '    for word in "${(@)words[2,CURRENT-1]}"; do',
        '        case "${at:+$at }$word" in',
        f"            ({names}) at=\"${{at:+$at }}$word\" ;;",
        "        esac",
        "    done",
        "    case $at in",
    ]
    for command in program.all():
        lines.append(f"        ({quoted(command.name)})")
        if command.commands:
            lines.append("            commands=(")
            for child in command.commands:
                lines.append("                " + quoted(last_word(child) + ":" + child.summary.replace(":", "\\:")))
            lines += [
                "            )",
                "            if [[ $PREFIX == -* ]]; then compadd -- --help; else _describe command commands; fi",
            ]
        else:
            lines.append("            _arguments \\")
            for option in command.options:
                spec = ("*" if option.is_repeatable else "") + option.name + ("=" if option.value else "") + f"[{described(option.help)}]"
                if option.value:
                    action = {"file": "_files", "folder": "_files -/"}.get(option.kind, " ")
                    spec += ("::" if option.has_optional_value else ":") + described(option.value) + ":" + action
                lines.append(f"                {quoted(spec)} \\")
            lines.append("                '*:operand:_files'")
        lines.append("            ;;")
    lines += ["    esac", "}", "", '_trebuchet "$@"']
    return "\n".join(lines) + "\n"


def fish(program):
    lines = [
        "# Completion of trebuchet for fish.",
        "function __trebuchet_at",
        "    set -l names " + " ".join(quoted_for_fish(command.name) for command in named(program)),
        "    set -l at ''",
        "    for word in (commandline -opc)[2..-1]",
        "        set -l longer (string trim -- \"$at $word\")",
        "        contains -- $longer $names; and set at $longer",
        "    end",
        "    test \"$at\" = \"$argv[1]\"",
        "end",
    ]
    for command in program.all():
        start = f"complete -c trebuchet -n {quoted_for_fish('__trebuchet_at ' + quoted_for_fish(command.name))}"
        for child in command.commands:
            lines.append(f"{start} -f -a {last_word(child)} -d {quoted_for_fish(child.summary)}")
        for option in command.options or []:
            # -r: the option has a value, which may be a file; -x: any text.
            value = "" if not option.value or option.has_optional_value else " -x"
            value = {"file": " -r -F", "folder": " -x -a '(__fish_complete_directories)'"}.get(option.kind, value)
            lines.append(f"{start} -l {option.name.removeprefix('--')}{value} -d {quoted_for_fish(option.help)}")
    return "\n".join(lines) + "\n"
