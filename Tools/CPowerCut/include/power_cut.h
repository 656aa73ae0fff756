#pragma once

#include <stdint.h>

/// The operations of a database on one of its files.
enum power_cut_kind {
    power_cut_open = 0,
    power_cut_write = 1,
    power_cut_truncate = 2,
    power_cut_sync = 3,
    power_cut_delete = 4,
    /// `PRAGMA synchronous` is executed; a result other than 0 sets it to OFF.
    power_cut_synchronous = 5,
};

/// Called before an operation, with the file's path. `offset` is the new size of a truncated file. A result other than 0 makes
/// the operation fail: the power is cut.
typedef int (*power_cut_told)(
    void *context, int kind, const char *path, int64_t offset, const void *bytes, int64_t count);

/// Registers a SQLite VFS with the given name in front of the default one. It reports operations on named files, and syncs
/// nothing. NULL without memory or without a default VFS.
void *power_cut_register(const char *name, void *context, power_cut_told told);

/// Unregisters the VFS; no file may be open through it.
void power_cut_unregister(void *way);
