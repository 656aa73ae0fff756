// epoll and eventfd, and the GNU calls beside them: what `import Glibc` does not show.
#include <sys/epoll.h>
#include <sys/eventfd.h>

// Declared under other names, so that they do not clash where _GNU_SOURCE is defined, and with plain types, so that
// this module does not come to own headers that are Glibc's.
int gnu_accept4(int socket, void *address, void *length, int flags) __asm__("accept4");
int gnu_pipe2(int *ends, int flags) __asm__("pipe2");
int gnu_pthread_setname(unsigned long thread, const char *name) __asm__("pthread_setname_np");
const char *gnu_strerrorname(int number) __asm__("strerrorname_np");
int gnu_sched_getaffinity(int process, unsigned long size, void *set) __asm__("sched_getaffinity");
int gnu_sched_setaffinity(int process, unsigned long size, const void *set) __asm__("sched_setaffinity");
int gnu_sem_clockwait(void *semaphore, int clock, const void *end) __asm__("sem_clockwait");
int gnu_malloc_trim(unsigned long pad) __asm__("malloc_trim");

// What the allocator has given out (uordblks, hblkhd) and keeps (arena), over all its arenas.
struct gnu_malloc_state {
    unsigned long arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, fordblks, keepcost;
};
struct gnu_malloc_state gnu_mallinfo(void) __asm__("mallinfo2");
