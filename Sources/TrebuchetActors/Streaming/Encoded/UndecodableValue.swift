internal import Platform
internal import Synchronization

/// An event, or a version of a state, that a reader could not decode as its type. A newer program at the other end may know more.
///
/// An undecodable event is left out, unless its reader asks for the end of the stream (``UndecodableEvents``). A reader of a state keeps the
/// value before the undecodable version, and gets the next version that decodes.
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
    /// The name of the actor; of an actor in this process its id.
    public let actor: String
    /// The name of the stream, as `observeMoves`.
    public let stream: String
    /// The place behind the event; nil of a state.
    public let bookmark: EventBookmark?
    /// The reason: the type, the beginning of the value in JSON, the problem, and the coding path.
    public let error: TrebuchetError
    /// How many values of this stream could not be decoded up to now, with this one.
    public let count: Int

    package init(
        kind: Kind, actor: String, stream: String, bookmark: EventBookmark? = nil, error: TrebuchetError, count: Int
    ) {
        (self.kind, self.actor, self.stream) = (kind, actor, stream)
        (self.bookmark, self.error, self.count) = (bookmark, error, count)
    }

    /// One line, with all of it.
    public var description: String {
        "\(error.message); \(kind == .event ? "left out" : "the value before stays"), \(count) of this stream so far"
    }

    /// Writes a line to standard error for the 1st, 2nd, 4th, 8th … undecodable value of each stream: what is
    /// done without `TrebuchetClient.Options.onUndecodable`. A line that standard error does not take at once is lost.
    public static let warn: @Sendable (UndecodableValue) -> Void = { value in
        if value.isLogged { WarningLine.write("\(value)") }
    }

    /// Whether a log has a line for this value.
    package var isLogged: Bool { count & (count - 1) == 0 }
}

/// The treatment of an event that does not decode.
public enum UndecodableEvents: Sendable {
    /// The event is left out and reported, and the bookmark moves behind it.
    case skip
    /// The stream ends with the error, and the bookmark stays before the event: a newer program can read it from there.
    case end
}

/// The undecodable values of one stream. From anywhere.
final class UndecodableValues: Sendable {
    private struct State {
        var count = 0
        /// Which version of a state was counted last.
        var version: UInt64 = 0
        /// Why the newest version of a state that a reader has asked for does not decode; nil when it does.
        var error: TrebuchetError?
    }

    private let state = Mutex(State())
    /// Whether `error` is set. A stream of which everything decodes reads nothing else.
    private let hasError = Atomic<Bool>(false)
    private let target: StreamTarget
    private let report: @Sendable (UndecodableValue) -> Void

    init(of target: StreamTarget, _ report: @escaping @Sendable (UndecodableValue) -> Void) {
        (self.target, self.report) = (target, report)
    }

    var error: TrebuchetError? { state.withLock { $0.error } }

    /// - Parameter version: of the state, once for all readers.
    func note(_ error: any Error, as type: Any.Type, version: UInt64) -> TrebuchetError {
        let part = target.filter?.path.map { "the part '\($0)' of " } ?? ""
        let failure = failure("\(part)state '\(target.name)'", type, error)
        let count: Int? = state.withLock { state in
            guard version > state.version else { return nil }
            (state.version, state.error) = (version, failure)
            hasError.store(true, ordering: .relaxed)
            state.count += 1
            return state.count
        }
        if let count { tell(.state, nil, failure, count) }
        return failure
    }

    func note(_ error: any Error, as type: Any.Type, event bookmark: EventBookmark?) -> TrebuchetError {
        let number = bookmark.map { " \($0.number)" } ?? ""
        let failure = failure("event\(number) of '\(target.name)'", type, error)
        let count = state.withLock { state in
            state.count += 1
            return state.count
        }
        tell(.event, bookmark, failure, count)
        return failure
    }

    /// A version of a state decodes.
    func didDecode(version: UInt64) {
        guard hasError.load(ordering: .relaxed) else { return }
        state.withLock { state in
            guard version >= state.version else { return }
            (state.version, state.error) = (version, nil)
            hasError.store(false, ordering: .relaxed)
        }
    }

    private func failure(_ what: String, _ type: Any.Type, _ error: any Error) -> TrebuchetError {
        TrebuchetError(.internal, "\(what) of actor '\(target.actorID)' does not decode as \(type): \(describe(error))")
    }

    private func tell(_ kind: UndecodableValue.Kind, _ bookmark: EventBookmark?, _ error: TrebuchetError, _ count: Int)
    {
        report(
            UndecodableValue(
                kind: kind, actor: target.actorID, stream: target.name, bookmark: bookmark, error: error, count: count))
    }
}
