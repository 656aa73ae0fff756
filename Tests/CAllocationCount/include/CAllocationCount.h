#pragma once

/// How often the calling thread has asked for memory. 0 in builds with a sanitizer, which has an allocator of its own.
long allocation_count(void);

/// Whether this build counts.
int allocations_are_counted(void);
