#if canImport(FoundationEssentials)
    internal import FoundationEssentials
#else
    internal import Foundation
#endif

/// The pending writes of a file: at most one in progress, and one that waits.
struct FileWrites: Sendable {
    /// One write of a value.
    struct Write: Sendable {
        let encode: @Sendable () throws -> Data
        /// The seen content of the value to write.
        let observed: ObservedFileContent
        /// True if `save()` requested the write, so that it may replace a file that could not be read.
        var isExplicit: Bool
        var continuations: [SaveContinuation]

        var isAllowed: Bool { isExplicit || !observed.isProtected }
    }

    private var waiting: Write?
    private var current: Write?

    /// The newest pending write; nil when there is none.
    var newest: Write? { waiting ?? current }

    /// The decision about a requested write.
    enum WriteDecision {
        /// No write is in progress: the caller executes this one.
        case write
        /// Written after the one in progress, or together with one that already waits.
        case queued
        case refused
    }

    mutating func addWrite(_ write: Write) -> WriteDecision {
        // Behind an explicit save a change is accepted: after that save, there is nothing left to protect.
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
        earlier.map { $0.isExplicit && $0.observed === write.observed } ?? false
    }

    /// Ends the current write and begins the waiting one, if there is one.
    mutating func next() -> Write? {
        current = waiting.take()
        return current
    }
}
