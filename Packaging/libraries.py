"""The shared libraries of an executable: those of Debian's packages, and those of Swift's runtime, which are copied beside it."""

import dataclasses
import os
import re
import subprocess


class LibraryProblem(Exception):
    """An executable that does not run as it is linked."""


@dataclasses.dataclass(frozen=True)
class Library:
    name: str
    path: str
    # Debian's package and its version; None for a library of no package.
    package: str | None
    version: str | None


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}).stdout


def needed(path):
    """The names of the libraries that a file names itself."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--dynamic", "--wide", path))


def owner(path):
    """Debian's package of a file, and its version."""
    real = os.path.realpath(path)
    # dpkg has the names of before /lib became a link to /usr/lib.
    for name in (real, real.removeprefix("/usr"), "/usr" + real):
        found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True).stdout
        if found:
            package = found.split(": ")[0].split(",")[0]
            return package.split(":")[0], output("dpkg-query", "--show", "--showformat=${Version}", package)
    return None, None


def linked(executable):
    """All libraries that the executable loads, by name. The loader of the system is one of them."""
    found = {}
    for line in output("ldd", executable).splitlines():
        parts = line.split()
        if "not found" in line:
            raise LibraryProblem(f"{executable} needs {parts[0]}, which is not on this machine")
        path = parts[2] if "=>" in parts else parts[0]
        if path.startswith("/"):
            name = os.path.basename(parts[0])
            found[name] = Library(name, path, *owner(path))
    return found


def debian_dependencies(executable, beside, folder):
    """The packages with the libraries that the executable and the files beside it need, with versions: `libc6 (>= 2.34)`.

    `folder` is an empty folder for the file that dpkg-shlibdeps reads.
    """
    os.makedirs(folder + "/debian")
    with open(folder + "/debian/control", "w") as file:
        file.write("Source: trebuchet\n\nPackage: trebuchet\nArchitecture: any\n")
    options = sorted({"-l" + os.path.dirname(path) for path in beside})
    # Libraries beside the executable belong to no package.
    command = ["dpkg-shlibdeps", "-O", "--ignore-missing-info", "--warnings=0", *options, *(f"-e{path}" for path in [executable, *beside])]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if result.returncode:
        raise LibraryProblem(f"{' '.join(command)} ended with {result.returncode}:\n{result.stderr}")
    line = result.stdout.strip()
    if not line.startswith("shlibs:Depends="):
        raise LibraryProblem(f"dpkg-shlibdeps printed no dependencies: {line}")
    return line.removeprefix("shlibs:Depends=")
