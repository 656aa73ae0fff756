/// The updates that a subscriber of a streamed state receives if it is slower than the changes.
public enum StreamDelivery: Sendable, Hashable {
    /// The newest value: versions may be skipped, but never the last one.
    case latest
    /// Each version, one for each change, also within one call. If a subscriber falls more than `buffer` versions or 16 MiB
    /// behind, its stream ends with the error `overflow`. A reader with that many unread versions also loses its stream.
    ///
    /// - Parameter buffer: at least 1, at most 1,048,576; values outside are clamped.
    case every(buffer: Int = 256)

    /// The maximum number of retained versions or events that may be requested, regardless of their size.
    static let maximumBuffered = 1 << 20

    /// Returns the capacity for a requested buffer.
    static func room(for buffer: Int) -> Int { min(max(1, buffer), maximumBuffered) }
}
