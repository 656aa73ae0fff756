internal import Platform
internal import Synchronization

/// An event, or a version of a state, that a reader could not decode as its type. A newer program at the other end may use
/// forms that this one does not support.
///
/// An undecodable event is skipped, unless its reader requests the end of the stream (``UndecodableEvents``). A reader of a
/// state keeps the value before the undecodable version, and receives the next version that decodes.
public struct UndecodableValue: Sendable, CustomStringConvertible {
    /// The kind of a value.
    public enum Kind: String, Sendable {
        /// An event of `@StreamedEvents`, or of a topic of a room.
        case event
        /// A version of a `@StreamedState`, or the presence of a member of a room.
        case state
    }

    /// The kind of the value.
    public let kind: Kind
    /// The name of the actor; for an actor in this process its id.
    public let actor: String
    /// The name of the stream, such as `observeMoves`.
    public let stream: String
    /// The position after the event; nil for a state.
    public let bookmark: EventBookmark?
    /// The reason: the type, the beginning of the value in JSON, the problem, and the coding path.
    public let error: TrebuchetError
    /// The number of values of this stream that could not be decoded, including this one.
    public let count: Int

    package init(
        kind: Kind, actor: String, stream: String, bookmark: EventBookmark? = nil, error: TrebuchetError, count: Int
    ) {
        (self.kind, self.actor, self.stream) = (kind, actor, stream)
        (self.bookmark, self.error, self.count) = (bookmark, error, count)
    }

    /// A line with all details.
    public var description: String {
        "\(error.message); \(kind == .event ? "skipped" : "the previous value stays"), \(count) of this stream so far"
    }

    /// Writes a line to standard error for the 1st, 2nd, 4th, 8th … undecodable value of each stream. The default without
    /// `TrebuchetClient.Options.onUndecodable`. A line that standard error does not accept immediately is lost.
    public static let warn: @Sendable (UndecodableValue) -> Void = { value in
        if value.isLogged { StandardErrorWarning.write("\(value)") }
    }

    /// Whether a log has a line for this value.
    package var isLogged: Bool { count & (count - 1) == 0 }
}

/// The treatment of an event that does not decode.
public enum UndecodableEvents: Sendable {
    /// The event is skipped and reported, and the bookmark moves past it.
    case skip
    /// The stream ends with the error, and the bookmark stays before the event: a newer program can read it from there.
    case end
}

/// The undecodable values of one stream. Accessed on any thread.
final class UndecodableValues: Sendable {
    /// The counts, and the current decoding error of a state.
    private struct State {
        var count = 0
        /// The version of a state that was counted last.
        var version: UInt64 = 0
        /// The decoding error of the newest version that a reader has requested; nil if it decodes.
        var error: TrebuchetError?
    }

    private let state = Mutex(State())
    /// Set together with `error`. Streams without errors read only this.
    private let hasError = Atomic<Bool>(false)
    private let target: StreamTarget
    private let report: @Sendable (UndecodableValue) -> Void

    init(of target: StreamTarget, _ report: @escaping @Sendable (UndecodableValue) -> Void) {
        (self.target, self.report) = (target, report)
    }

    var error: TrebuchetError? { state.withLock { $0.error } }

    /// Records a version of a state that does not decode.
    ///
    /// - Parameter version: the version of the state, which is counted once for all readers.
    func recordVersion(_ error: any Error, as type: Any.Type, version: UInt64) -> TrebuchetError {
        let part = target.filter?.path.map { "value '\($0)' of " } ?? ""
        let failure = failure("\(part)state '\(target.name)'", type, error)
        let count: Int? = state.withLock { state in
            guard version > state.version else { return nil }
            (state.version, state.error) = (version, failure)
            hasError.store(true, ordering: .relaxed)
            state.count += 1
            return state.count
        }
        if let count { report(.state, nil, failure, count) }
        return failure
    }

    func recordEvent(_ error: any Error, as type: Any.Type, event bookmark: EventBookmark?) -> TrebuchetError {
        let number = bookmark.map { " \($0.sequence)" } ?? ""
        let failure = failure("event\(number) of '\(target.name)'", type, error)
        let count = state.withLock { state in
            state.count += 1
            return state.count
        }
        report(.event, bookmark, failure, count)
        return failure
    }

    /// Clears the error when a version of a state decodes.
    func didDecode(version: UInt64) {
        guard hasError.load(ordering: .relaxed) else { return }
        state.withLock { state in
            guard version >= state.version else { return }
            (state.version, state.error) = (version, nil)
            hasError.store(false, ordering: .relaxed)
        }
    }

    private func failure(_ what: String, _ type: Any.Type, _ error: any Error) -> TrebuchetError {
        TrebuchetError(
            .internal, "\(what) of actor '\(target.actorID)' cannot be decoded as \(type): \(describe(error))")
    }

    private func report(
        _ kind: UndecodableValue.Kind, _ bookmark: EventBookmark?, _ error: TrebuchetError, _ count: Int
    ) {
        report(
            UndecodableValue(
                kind: kind, actor: target.actorID, stream: target.name, bookmark: bookmark, error: error, count: count))
    }
}
