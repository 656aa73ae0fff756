#pragma once

#include <stdint.h>

/// What a database does to one of its files.
enum power_cut_kind {
    power_cut_open = 0,
    power_cut_write = 1,
    power_cut_truncate = 2,
    power_cut_sync = 3,
    power_cut_delete = 4,
    /// `PRAGMA synchronous` was asked for; an answer that is not 0 makes it OFF.
    power_cut_synchronous = 5,
};

/// Told before it is done, with the file's path. `offset` is the size that a truncated file gets. An answer that is not 0 makes
/// it fail: there is no power any more.
typedef int (*power_cut_told)(
    void *context, int kind, const char *path, int64_t offset, const void *bytes, int64_t count);

/// Makes a way to the disk for SQLite, by a name of its own, that stands in front of the usual one. Files that have a name are told
/// of; nothing is really synced. NULL when there is no memory or no usual way.
void *power_cut_register(const char *name, void *context, power_cut_told told);

/// Takes it away; no file may be open through it.
void power_cut_unregister(void *way);
