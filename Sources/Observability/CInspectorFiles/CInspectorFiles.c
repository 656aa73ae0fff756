#include "CInspectorFiles.h"

// The compiler copies the files into constants (C23); a change of a file compiles this one again.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char html[] = {
#embed "../../../Web/inspector/index.html"
};

static const unsigned char style[] = {
#embed "../../../Web/dist/inspector.css"
};

static const unsigned char script[] = {
#embed "../../../Web/dist/inspector.js"
};

InspectorPageFiles inspectorPage(void) {
    return (InspectorPageFiles){{html, sizeof html}, {style, sizeof style}, {script, sizeof script}};
}
