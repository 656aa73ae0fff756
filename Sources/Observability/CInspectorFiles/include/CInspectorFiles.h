#pragma once

#include <stddef.h>

/// A file of the inspector page that the executable contains.
typedef struct {
    const unsigned char *_Nonnull bytes;
    size_t count;
} InspectorFile;

/// The files of the inspector page.
typedef struct {
    InspectorFile html;
    InspectorFile style;
    InspectorFile script;
} InspectorPageFiles;

InspectorPageFiles inspectorPage(void);
