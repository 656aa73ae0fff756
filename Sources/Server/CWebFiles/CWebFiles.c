#include "CWebFiles.h"

// The compiler copies the files into constants (C23); a change of a file compiles this one again.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char trebuchet[] = {
#embed "../../../Web/dist/trebuchet.js"
};

static const unsigned char services[] = {
#embed "../../../Web/dist/trebuchet-services.js"
};

static const unsigned char rooms[] = {
#embed "../../../Web/dist/trebuchet-rooms.js"
};

static const unsigned char writes[] = {
#embed "../../../Web/dist/trebuchet-writes.js"
};

static const unsigned char offline[] = {
#embed "../../../Web/dist/trebuchet-offline.js"
};

static const unsigned char exact[] = {
#embed "../../../Web/dist/trebuchet-exact.js"
};

static const unsigned char traces[] = {
#embed "../../../Web/dist/trebuchet-traces.js"
};

static const unsigned char dom[] = {
#embed "../../../Web/dist/dom.js"
};

static const unsigned char svelte[] = {
#embed "../../../Web/dist/svelte.js"
};

static const unsigned char start[] = {
#embed "../../../Web/start/index.html"
};

static const WebFile files[] = {
    {"trebuchet.js", trebuchet, sizeof trebuchet},
    {"trebuchet-services.js", services, sizeof services},
    {"trebuchet-rooms.js", rooms, sizeof rooms},
    {"trebuchet-writes.js", writes, sizeof writes},
    {"trebuchet-offline.js", offline, sizeof offline},
    {"trebuchet-exact.js", exact, sizeof exact},
    {"trebuchet-traces.js", traces, sizeof traces},
    {"dom.js", dom, sizeof dom},
    {"svelte.js", svelte, sizeof svelte},
};

size_t clientFileCount(void) { return sizeof files / sizeof *files; }

WebFile clientFile(size_t index) { return files[index]; }

WebFile startPage(void) { return (WebFile){"index.html", start, sizeof start}; }
