internal import CEpoll
internal import Glibc

/// A pipe that no program gets which the process starts, not even one that is started at that moment.
package struct Pipe {
    package let readEnd: Int32
    package let writeEnd: Int32

    /// Nil when there is none to be had; `errno` says why.
    ///
    /// - Parameter isBlocking: whether reading and writing wait. Default true.
    package init?(isBlocking: Bool = true) {
        var ends: [Int32] = [-1, -1]
        guard gnu_pipe2(&ends, O_CLOEXEC | (isBlocking ? 0 : O_NONBLOCK)) == 0 else { return nil }
        (readEnd, writeEnd) = (ends[0], ends[1])
    }
}
