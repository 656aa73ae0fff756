#pragma once

/// How often the calling thread has asked for memory. 0 in builds with a sanitizer, which has an allocator of its own.
long allocation_count(void);

/// Bytes that the process has asked for and not given back.
long allocated_bytes(void);

/// Writes the name of the calling thread, of up to 15 characters.
void thread_name(char name[16]);

/// Whether this build counts.
int allocations_are_counted(void);
