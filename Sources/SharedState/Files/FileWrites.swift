#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// What is to be written to a file: at most one content being written, and one that waits.
struct FileWrites: Sendable {
    struct Write: Sendable {
        let encode: @Sendable () throws -> Data
        var continuations: [SaveContinuation]
    }

    private var waiting: Write?
    private var current: Write?
    /// Whether what is in the file is not known, and only an explicit save may replace it.
    var isProtected = false

    /// The last content that was read or written, as far as needed to know it again; nil before there was any.
    private var known: Int?

    /// What a file's content is known by. Made out of the lock: all of it is read.
    static func mark(of data: Data?) -> Int {
        var hasher = Hasher()
        hasher.combine(data == nil)
        // The hash of `Data` is one of its beginning alone.
        data?.withUnsafeBytes { hasher.combine(bytes: $0) }
        return hasher.finalize()
    }

    /// Notes the file's content by its mark; false when it is the one that was noted last.
    mutating func note(_ mark: Int) -> Bool {
        defer { known = mark }
        return known != mark
    }

    /// What the file holds once all is written; nil when nothing is on its way.
    var newest: Write? { waiting ?? current }

    enum Answer {
        /// Nobody writes: the caller has to.
        case write
        /// Written after the one under way, or together with one that waits already.
        case queued
        case refused
    }

    mutating func add(_ write: Write, _ context: SaveContext) -> Answer {
        guard !isProtected || context == .userInitiated else { return .refused }
        isProtected = false
        let earlier = waiting?.continuations ?? []
        let isWriting = newest != nil
        waiting = write
        waiting?.continuations = earlier + write.continuations
        return isWriting ? .queued : .write
    }

    /// Ends the current write and begins the one that waits, if there is one.
    mutating func next() -> Write? {
        current = waiting.take()
        return current
    }
}
