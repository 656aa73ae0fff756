#ifndef C_BARE_FANOUT_H
#define C_BARE_FANOUT_H

/// Sends what one connection says to all others, with nothing but system calls, until the process is killed.
///
/// A connection whose first byte is `p` publishes: with each `tick` bytes it sends, one of them too. Each of the others gets `size` bytes for
/// that, those of all ticks that were read together in one `send`; one that does not take them is passed over until it has what it was
/// sent before. For each tick the publisher gets 64 bytes back.
///
/// - listener: a socket that listens.
/// - Returns: a number of `errno`, when there is not memory enough or the system refuses an epoll.
int bare_fanout(int listener, int tick, int size);

#endif
