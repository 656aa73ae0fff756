/// What a subscriber of a streamed state is sent when it is slower than the changes.
public enum StreamDelivery: Sendable, Hashable {
    /// The newest value: versions may be skipped, the last one never is.
    case latest
    /// Each version, one for each change, also within one call. A subscriber that falls more than `buffer` versions behind, or
    /// 16 MiB, loses its stream with the error `overflow`; so does a reader that leaves as many unread.
    ///
    /// - Parameter buffer: at least 1, at most 1,048,576; less or more counts as these.
    case every(buffer: Int = 256)

    /// Versions or events that may be asked for to be kept, whatever their size.
    static let mostBuffered = 1 << 20

    /// What a buffer has room for that was asked for so much.
    static func room(for buffer: Int) -> Int { min(max(1, buffer), mostBuffered) }
}
