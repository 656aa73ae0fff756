// epoll and eventfd: system headers that `import Glibc` does not show.
#include <sys/epoll.h>
#include <sys/eventfd.h>
