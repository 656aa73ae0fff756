#if canImport(Darwin)
    internal import Darwin
#else
    internal import CEpoll
    internal import Glibc
#endif

/// A pipe that no program gets which the process starts, on Linux not even one that is started at that moment.
package struct Pipe {
    package let readEnd: Int32
    package let writeEnd: Int32

    /// Nil when there is none to be had; `errno` says why.
    ///
    /// - Parameter isBlocking: whether reading and writing wait. Default true.
    package init?(isBlocking: Bool = true) {
        var ends: [Int32] = [-1, -1]
        #if canImport(Darwin)
            // There is no call that does all at once: a program that is started between these two gets the ends.
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
