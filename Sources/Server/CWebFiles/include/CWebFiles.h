#pragma once

#include <stddef.h>

/// A file of Web that the executable contains.
typedef struct {
    const char *_Nonnull name;
    const unsigned char *_Nonnull bytes;
    size_t count;
} WebFile;

/// The number of modules of the client library.
size_t clientFileCount(void);

/// Returns a module of the client library; the index must be less than the number.
WebFile clientFile(size_t index);

/// Returns the page at `/` of `trebuchet serve`.
WebFile startPage(void);
