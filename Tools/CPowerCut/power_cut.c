#include "power_cut.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

// A VFS that reports operations and forwards them to the VFS below.
struct way {
    sqlite3_vfs vfs;
    sqlite3_vfs *below;
    power_cut_told told;
    void *context;
    char name[];
};

// An open file; the file of the VFS below follows it in memory.
struct file {
    sqlite3_file base;
    struct way *way;
    // NULL for files without a name, which are lost in a power cut. SQLite retains the text while the file is open.
    const char *path;
};

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((struct file *)file + 1); }

static struct way *way_of(sqlite3_vfs *vfs) { return (struct way *)vfs; }

static int tell(sqlite3_file *file, int kind, sqlite3_int64 offset, const void *bytes, int count) {
    struct file *own = (struct file *)file;
    if (own->path == NULL) return 0;
    return own->way->told(own->way->context, kind, own->path, offset, bytes, count);
}

static int file_close(sqlite3_file *file) { return below(file)->pMethods->xClose(below(file)); }

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 offset) {
    return below(file)->pMethods->xRead(below(file), bytes, count, offset);
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 offset) {
    if (tell(file, power_cut_write, offset, bytes, count)) return SQLITE_IOERR_WRITE;
    return below(file)->pMethods->xWrite(below(file), bytes, count, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    if (tell(file, power_cut_truncate, size, NULL, 0)) return SQLITE_IOERR_TRUNCATE;
    return below(file)->pMethods->xTruncate(below(file), size);
}

// The simulated disk has the reported data; a real sync would be wasted.
static int file_sync(sqlite3_file *file, int flags) {
    (void)flags;
    return tell(file, power_cut_sync, 0, NULL, 0) ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    return below(file)->pMethods->xFileSize(below(file), size);
}

static int file_lock(sqlite3_file *file, int lock) { return below(file)->pMethods->xLock(below(file), lock); }

static int file_unlock(sqlite3_file *file, int lock) { return below(file)->pMethods->xUnlock(below(file), lock); }

static int file_reserved(sqlite3_file *file, int *result) {
    return below(file)->pMethods->xCheckReservedLock(below(file), result);
}

static int file_control(sqlite3_file *file, int operation, void *argument) {
    if (operation == SQLITE_FCNTL_PRAGMA) {
        // Called before SQLite parses the words, which it owns and reads afterwards: a change here takes effect.
        char **words = argument;
        if (words[1] && words[2] && sqlite3_stricmp(words[1], "synchronous") == 0 && strlen(words[2]) >= 3 &&
            tell(file, power_cut_synchronous, 0, NULL, 0))
            strcpy(words[2], "OFF");
    }
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int file_sector_size(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }

static int file_characteristics(sqlite3_file *file) {
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int file_map(sqlite3_file *file, int page, int size, int extend, void volatile **memory) {
    return below(file)->pMethods->xShmMap(below(file), page, size, extend, memory);
}

static int file_shared_lock(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}

static void file_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int file_unmap(sqlite3_file *file, int delete_it) {
    return below(file)->pMethods->xShmUnmap(below(file), delete_it);
}

// Version 2: version 1 has no shared memory for the log; version 3 would write mapped pages without a report.
static const sqlite3_io_methods methods = {
    2,             file_close,       file_read,        file_write,   file_truncate,
    file_sync,     file_size,        file_lock,        file_unlock,  file_reserved,
    file_control,  file_sector_size, file_characteristics, file_map, file_shared_lock,
    file_barrier,  file_unmap,       NULL,             NULL,
};

static int way_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *opened_flags) {
    struct way *way = way_of(vfs);
    struct file *own = (struct file *)file;
    memset(own, 0, sizeof(struct file));
    own->way = way;
    own->path = flags & SQLITE_OPEN_DELETEONCLOSE ? NULL : path;
    if (tell(file, power_cut_open, 0, NULL, 0)) return SQLITE_CANTOPEN;
    int result = way->below->xOpen(way->below, path, below(file), flags, opened_flags);
    // SQLite closes every file with methods, also after a failure.
    if (below(file)->pMethods) own->base.pMethods = &methods;
    return result;
}

static int way_delete(sqlite3_vfs *vfs, const char *path, int syncs_folder) {
    struct way *way = way_of(vfs);
    if (way->told(way->context, power_cut_delete, path, syncs_folder, NULL, 0)) return SQLITE_IOERR_DELETE;
    return way->below->xDelete(way->below, path, 0);
}

static int way_access(sqlite3_vfs *vfs, const char *path, int flags, int *result) {
    return way_of(vfs)->below->xAccess(way_of(vfs)->below, path, flags, result);
}

static int way_full_path(sqlite3_vfs *vfs, const char *path, int size, char *full) {
    return way_of(vfs)->below->xFullPathname(way_of(vfs)->below, path, size, full);
}

static int way_randomness(sqlite3_vfs *vfs, int size, char *bytes) {
    return way_of(vfs)->below->xRandomness(way_of(vfs)->below, size, bytes);
}

static int way_sleep(sqlite3_vfs *vfs, int microseconds) {
    return way_of(vfs)->below->xSleep(way_of(vfs)->below, microseconds);
}

static int way_time(sqlite3_vfs *vfs, double *time) {
    return way_of(vfs)->below->xCurrentTime(way_of(vfs)->below, time);
}

static int way_error(sqlite3_vfs *vfs, int size, char *text) {
    return way_of(vfs)->below->xGetLastError(way_of(vfs)->below, size, text);
}

static int way_time64(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    return way_of(vfs)->below->xCurrentTimeInt64(way_of(vfs)->below, time);
}

void *power_cut_register(const char *name, void *context, power_cut_told told) {
    sqlite3_vfs *usual = sqlite3_vfs_find("unix");
    struct way *way = usual ? calloc(1, sizeof(struct way) + strlen(name) + 1) : NULL;
    if (way == NULL) return NULL;
    strcpy(way->name, name);
    way->below = usual;
    way->told = told;
    way->context = context;
    way->vfs.iVersion = 2;
    way->vfs.szOsFile = (int)sizeof(struct file) + usual->szOsFile;
    way->vfs.mxPathname = usual->mxPathname;
    way->vfs.zName = way->name;
    way->vfs.xOpen = way_open;
    way->vfs.xDelete = way_delete;
    way->vfs.xAccess = way_access;
    way->vfs.xFullPathname = way_full_path;
    way->vfs.xRandomness = way_randomness;
    way->vfs.xSleep = way_sleep;
    way->vfs.xCurrentTime = way_time;
    way->vfs.xGetLastError = way_error;
    way->vfs.xCurrentTimeInt64 = way_time64;
    if (sqlite3_vfs_register(&way->vfs, 0) != SQLITE_OK) {
        free(way);
        return NULL;
    }
    return way;
}

void power_cut_unregister(void *way) {
    sqlite3_vfs_unregister(&((struct way *)way)->vfs);
    free(way);
}
