#if canImport(Darwin)
    internal import Darwin
#else
    internal import CEpoll
    internal import Glibc
#endif

/// A pipe that is not inherited by child processes; on Linux not even by one that is started concurrently.
package struct Pipe {
    package let readEnd: Int32
    package let writeEnd: Int32

    /// Returns nil on failure, with the reason in `errno`.
    ///
    /// - Parameter isBlocking: whether reads and writes block. Default true.
    package init?(isBlocking: Bool = true) {
        var ends: [Int32] = [-1, -1]
        #if canImport(Darwin)
            // Darwin has no call that does both atomically: a child process started between these two calls inherits the ends.
            guard pipe(&ends) == 0 else { return nil }
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                if !isBlocking { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
            }
        #else
            guard gnu_pipe2(&ends, O_CLOEXEC | (isBlocking ? 0 : O_NONBLOCK)) == 0 else { return nil }
        #endif
        (readEnd, writeEnd) = (ends[0], ends[1])
    }
}
