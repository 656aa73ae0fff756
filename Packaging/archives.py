"""Archives and compressed files whose bytes depend on their content only, not on the time, the user or the machine."""

import gzip
import io
import os
import tarfile


def compressed(data, level=9):
    """Like `gzip -n`: without a name and a time."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=level, fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def tar(entries, epoch, level=9):
    """A compressed archive of (name, mode, content) in the given order, and the folders above them; each belongs to root."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode, content in entries:
            info = tarfile.TarInfo(name)
            info.mode, info.mtime, info.uname, info.gname = mode, epoch, "root", "root"
            if content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return compressed(buffer.getvalue(), level)


def entries(folder, top):
    """The files and folders below `folder`, sorted, as entries below the name `top`."""
    yield top, 0o755, None
    for parent, folders, files in os.walk(folder):
        folders.sort()
        relative = os.path.relpath(parent, folder)
        if relative != ".":
            yield f"{top}/{relative}", 0o755, None
        for name in sorted(files):
            path = os.path.join(parent, name)
            with open(path, "rb") as file:
                mode = 0o755 if os.stat(path).st_mode & 0o100 else 0o644
                yield os.path.normpath(f"{top}/{relative}/{name}"), mode, file.read()
