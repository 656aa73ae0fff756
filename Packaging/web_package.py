"""The package of the web client for npm: the archive that `npm pack` makes of `Web`, with the project's version, made without npm."""

import fnmatch
import json
import os

import archives

# The time of every file in npm's archives: 1985-10-26 08:15:00 UTC.
TIME = 499162500


class MissingFile(Exception):
    """A file that package.json names and that does not exist."""


def files(folder, manifest):
    """The files of the package, sorted: those that `files` of package.json selects, and those that npm always adds."""
    result = {"package.json"} | {name for name in ("README.md", "LICENSE") if os.path.exists(f"{folder}/{name}")}
    excluded = [entry[1:] for entry in manifest["files"] if entry.startswith("!")]
    for entry in manifest["files"]:
        if entry.startswith("!"):
            continue
        if os.path.isdir(f"{folder}/{entry}"):
            for parent, _, names in os.walk(f"{folder}/{entry}"):
                result |= {os.path.relpath(os.path.join(parent, name), folder) for name in names}
        else:
            result.add(entry)
    return sorted(name for name in result if not any(fnmatch.fnmatch(name, pattern) for pattern in excluded))


def targets(value):
    """The files that `exports` refers to."""
    if isinstance(value, str):
        return [value]
    return [target for part in value.values() for target in targets(part)]


def archive(folder, version):
    with open(f"{folder}/package.json", encoding="utf-8") as file:
        text = file.read()
    manifest = json.loads(text)
    listed = files(folder, manifest)
    for target in targets(manifest["exports"]) + [manifest["types"]]:
        if os.path.normpath(target) not in listed:
            raise MissingFile(f"Web/package.json exports {target}, which the package does not have")
    versioned = text.replace('"version": "0.0.0"', f'"version": "{version}"')
    if json.loads(versioned)["version"] != version:
        raise MissingFile('Web/package.json must have "version": "0.0.0", which the version of the file VERSION replaces')
    entries = []
    for name in listed:
        with open(f"{folder}/{name}", "rb") as file:
            content = file.read()
        entries.append((f"package/{name}", 0o644, versioned.encode() if name == "package.json" else content))
    return archives.tar(entries, TIME)
