#!/bin/sh
# Installs the files of this archive, or removes them.
set -eu

usage() {
    cat <<'USAGE'
usage: ./install.sh [--prefix DIR] [--uninstall] [--help]

Copies the program, its manual page and completions below DIR (/usr/local). As root, on a
system with systemd, it also installs the units, creates /etc/default/trebuchet if there is none,
and the system user trebuchet. It starts nothing.

  --uninstall  removes these files; the user, /etc/default/trebuchet and the data remain
USAGE
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
prefix=/usr/local
action=install
units=/etc/systemd/system
unit_names="trebuchet.service trebuchet@.service trebuchet-backup.service trebuchet-backup.timer"
while [ $# -gt 0 ]; do
    case $1 in
        --prefix)
            [ $# -gt 1 ] || { usage >&2; exit 2; }
            prefix=$2
            shift
            ;;
        --uninstall) action=uninstall ;;
        -h | --help)
            usage
            exit 0
            ;;
        *)
            usage >&2
            exit 2
            ;;
    esac
    shift
done
case $prefix in
    /*) ;;
    *)
        echo "install.sh: --prefix must begin with /: '$prefix'" >&2
        exit 2
        ;;
esac
with_units=no
if [ "$(id -u)" = 0 ] && [ -d "$units" ]; then with_units=yes; fi

# The files of the archive that are installed, relative to its folder and to the prefix.
files() {
    (cd "$here" && find bin lib share -type f 2>/dev/null | sort)
}

if [ $action = uninstall ]; then
    files | while read -r file; do rm -f "$prefix/$file"; done
    if [ -d "$prefix/lib/trebuchet" ]; then rmdir "$prefix/lib/trebuchet"; fi
    rmdir "$prefix/share/doc/trebuchet"
    if [ $with_units = yes ]; then for unit in $unit_names; do rm -f "$units/$unit"; done; fi
    echo "removed trebuchet from $prefix"
    exit
fi

files | while read -r file; do
    mode=644
    if [ -x "$here/$file" ]; then mode=755; fi
    mkdir -p "$prefix/$(dirname "$file")"
    # In place of the old file, which a running server continues to use.
    cp "$here/$file" "$prefix/$file.new"
    chmod $mode "$prefix/$file.new"
    mv "$prefix/$file.new" "$prefix/$file"
done
echo "installed $prefix/bin/trebuchet"
if [ $with_units = yes ]; then
    for unit in $unit_names; do
        sed "s|/usr/bin/trebuchet|$prefix/bin/trebuchet|" "$here/systemd/$unit" >"$units/$unit"
        chmod 644 "$units/$unit"
    done
    if [ ! -e /etc/default/trebuchet ]; then
        mkdir -p /etc/default
        cp "$here/systemd/trebuchet.default" /etc/default/trebuchet
        chmod 644 /etc/default/trebuchet
    fi
    if ! getent passwd trebuchet >/dev/null; then
        useradd --system --user-group --home-dir /var/lib/trebuchet --no-create-home --shell "$(command -v nologin || echo /bin/false)" trebuchet
    fi
    echo "installed $units/trebuchet.service; to start it: systemctl daemon-reload && systemctl enable --now trebuchet"
fi
