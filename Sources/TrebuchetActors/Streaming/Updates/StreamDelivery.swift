/// What a subscriber of a streamed state is sent when it is slower than the changes.
public enum StreamDelivery: Sendable, Hashable {
    /// The newest value: versions may be skipped, the last one never is.
    case latest
    /// Each version, one for each change, also within one call. A subscriber that falls more than `buffer` versions behind, or
    /// 16 MiB, loses its stream with the error `overflow`; so does a reader that leaves as many unread.
    ///
    /// - Parameter buffer: at least 1.
    case every(buffer: Int = 256)
}
