/// What a reactor calls when a descriptor is ready; always on the reactor's thread.
package class ReadinessHandler {
    /// `events` are the bits of `EPOLLIN`, `EPOLLOUT`, `EPOLLERR`, `EPOLLHUP`, `EPOLLRDHUP`.
    func ready(_ events: UInt32) {}
}

/// What has more to do than a turn has room for.
package protocol InLine: AnyObject {
    /// Does some of it, for about 100 µs, and stands in line again when it has more.
    func goOn()
}
