#define _GNU_SOURCE
#include "CBareFanout.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { most_peers = 1 << 16, most_read = 64 << 10, answer = 64, most_events = 512 };

struct peer {
    /// What it was sent and its socket did not take.
    int rest;
    /// Its place among the subscribers; -1 for the publisher, -2 until that is known.
    int place;
};

static struct peer *peers;
static int *subscribers;
static int count;

static void watch(int poller, int descriptor, unsigned events, int change) {
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    epoll_ctl(poller, change, descriptor, &event);
}

static void end(int descriptor) {
    int place = peers[descriptor].place;
    if (place >= 0) {
        subscribers[place] = subscribers[--count];
        peers[subscribers[place]].place = place;
    }
    close(descriptor);
}

/// Sends from the end of what is to be sent, so that what is left is its last bytes: all are alike.
static void put(int poller, int descriptor, const char *bytes, int length) {
    ssize_t sent = send(descriptor, bytes, length, MSG_NOSIGNAL);
    if (sent == length) return;
    if (sent < 0 && errno != EAGAIN) return;
    peers[descriptor].rest = length - (sent > 0 ? (int)sent : 0);
    watch(poller, descriptor, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
}

int bare_fanout(int listener, int tick, int size) {
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) return errno;
    int most_ticks = most_read / tick + 1;
    size_t room = (size_t)most_ticks * (size > answer ? size : answer);
    char *bytes = malloc(room), *input = malloc(most_read);
    peers = calloc(most_peers, sizeof *peers);
    subscribers = calloc(most_peers, sizeof *subscribers);
    if (!bytes || !input || !peers || !subscribers) return ENOMEM;
    memset(bytes, 'x', room);
    watch(poller, listener, EPOLLIN, EPOLL_CTL_ADD);
    struct epoll_event events[most_events];
    int left = 0;
    for (;;) {
        int ready = epoll_wait(poller, events, most_events, -1);
        for (int i = 0; i < ready; i++) {
            int descriptor = events[i].data.fd;
            if (descriptor == listener) {
                int taken = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
                if (taken < 0) continue;
                if (taken >= most_peers) {
                    close(taken);
                    continue;
                }
                setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                peers[taken] = (struct peer){.rest = 0, .place = -2};
                watch(poller, taken, EPOLLIN, EPOLL_CTL_ADD);
                continue;
            }
            struct peer *peer = &peers[descriptor];
            if (events[i].events & EPOLLOUT && peer->rest > 0) {
                int rest = peer->rest;
                peer->rest = 0;
                watch(poller, descriptor, EPOLLIN, EPOLL_CTL_MOD);
                put(poller, descriptor, bytes, rest);
            }
            if (!(events[i].events & ~EPOLLOUT)) continue;
            ssize_t read = recv(descriptor, input, most_read, 0);
            if (read <= 0) {
                if (read == 0 || errno != EAGAIN) end(descriptor);
                continue;
            }
            if (peer->place == -2) {
                peer->place = -1;
                if (input[0] != 'p') {
                    peer->place = count;
                    subscribers[count++] = descriptor;
                }
            }
            if (peer->place >= 0) continue;
            int ticks = (left + (int)read) / tick;
            left = (left + (int)read) % tick;
            if (ticks == 0) continue;
            for (int other = 0; other < count; other++) {
                if (peers[subscribers[other]].rest > 0) continue;
                put(poller, subscribers[other], bytes, ticks * size);
            }
            // What the publisher does not take of this is not kept: it counts nothing.
            if (send(descriptor, bytes, ticks * answer, MSG_NOSIGNAL) < 0 && errno != EAGAIN) end(descriptor);
        }
    }
}
