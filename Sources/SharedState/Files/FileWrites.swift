#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// What is to be written to a file: at most one content being written, and one that waits.
struct FileWrites: Sendable {
    struct Write: Sendable {
        let encode: @Sendable () throws -> Data
        /// That of the value which is written.
        let seen: SeenContent
        /// Whether somebody asked for it by `save()`, so that it may replace a file that could not be read.
        var isExplicit: Bool
        var continuations: [SaveContinuation]

        var isAllowed: Bool { isExplicit || !seen.isProtected }
    }

    private var waiting: Write?
    private var current: Write?

    /// What the file holds once all is written; nil when nothing is on its way.
    var newest: Write? { waiting ?? current }

    enum Answer {
        /// Nobody writes: the caller has to.
        case write
        /// Written after the one under way, or together with one that waits already.
        case queued
        case refused
    }

    mutating func add(_ write: Write) -> Answer {
        // Behind an explicit save a change is let in: when that has worked, there is nothing left to protect.
        guard write.isAllowed || isReplacing(waiting, write) || isReplacing(current, write) else { return .refused }
        let isWriting = newest != nil
        var write = write
        if let waiting {
            write.isExplicit = write.isExplicit || isReplacing(waiting, write)
            write.continuations = waiting.continuations + write.continuations
        }
        waiting = write
        return isWriting ? .queued : .write
    }

    private func isReplacing(_ earlier: Write?, _ write: Write) -> Bool {
        earlier.map { $0.isExplicit && $0.seen === write.seen } ?? false
    }

    /// Ends the current write and begins the one that waits, if there is one.
    mutating func next() -> Write? {
        current = waiting.take()
        return current
    }
}
