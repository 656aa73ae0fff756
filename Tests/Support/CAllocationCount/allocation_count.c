#define _GNU_SOURCE
#include "CAllocationCount.h"

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>

static __thread long count;

long allocation_count(void) { return count; }

long allocated_bytes(void) { return (long)mallinfo2().uordblks; }

void thread_name(char name[16]) { pthread_getname_np(pthread_self(), name, 16); }

#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
int allocations_are_counted(void) { return 0; }
#else
int allocations_are_counted(void) { return 1; }
#endif

#if !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)

// Defined in the test executable, these come before the C library's for every library in the process.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    count += 1;
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count += 1;
    return __libc_calloc(number, size);
}

void *realloc(void *memory, size_t size) {
    count += 1;
    return __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    count += 1;
    *memory = __libc_memalign(alignment, size);
    return *memory == NULL ? 12 : 0;
}

void *aligned_alloc(size_t alignment, size_t size) {
    count += 1;
    return __libc_memalign(alignment, size);
}

#endif
