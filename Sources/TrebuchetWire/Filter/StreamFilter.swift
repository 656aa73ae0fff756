/// Which part of a streamed state a reader wants, and when; the server evaluates it, once for all who ask for the same.
///
///     todos.observeState(filter: .path("/players/7").distinct().atMost(every: .milliseconds(100)), as: Player.self)
///
/// A filter that makes no sense, such as a path without a slash, ends its stream with `invalidArguments`.
public struct StreamFilter: Sendable, Hashable {
    /// The part that is wanted (RFC 6901); nil for the whole state.
    package internal(set) var path: String?
    package internal(set) var isDistinct = false
    package internal(set) var minimumIntervalMilliseconds: Int?
    package internal(set) var condition: Condition?

    /// Whether a value that is equal to the last one does not count.
    package var skipsEqual: Bool { isDistinct || path != nil }

    /// What a part of the state must be for a version to count.
    package struct Condition: Sendable, Hashable {
        let path: String
        let test: StreamCondition
    }

    /// Everything.
    public init() {}

    /// Only the part at a JSON pointer (RFC 6901), as `/players/7`; sent when it has changed. A part that does not exist
    /// is null: a reader of an optional type gets nil, another one waits until it exists.
    public static func path(_ pointer: String) -> Self { Self().path(pointer) }
    /// The same for steps that may have any characters in them.
    public static func path(steps: [String]) -> Self { Self().path(steps: steps) }
    /// Only versions whose part at `pointer` is what the condition says; `""` is the whole state.
    public static func `where`(_ pointer: String, _ condition: StreamCondition) -> Self {
        Self().where(pointer, condition)
    }
    /// No value that is equal to the one before.
    public static func distinct() -> Self { Self().distinct() }
    /// No more than one value in an interval (at least 1 ms, at most 1 hour); the last value is never lost.
    public static func atMost(every interval: Duration) -> Self { Self().atMost(every: interval) }

    public func path(_ pointer: String) -> Self { changed { $0.path = pointer } }

    public func path(steps: [String]) -> Self {
        path(
            steps.map { step in
                var text: [UInt8] = [0x2F]
                for byte in step.utf8 { JSONPointer.appendEscaped(byte, to: &text) }
                return String(decoding: text, as: UTF8.self)
            }.joined())
    }

    public func `where`(_ pointer: String, _ condition: StreamCondition) -> Self {
        changed { $0.condition = Condition(path: pointer, test: condition) }
    }

    public func distinct() -> Self { changed { $0.isDistinct = true } }

    public func atMost(every interval: Duration) -> Self {
        let (seconds, attoseconds) = interval.components
        let milliseconds = Double(seconds) * 1_000 + Double(attoseconds) / 1e15
        return changed { $0.minimumIntervalMilliseconds = Int(min(max(milliseconds.rounded(.up), -1), 1e9)) }
    }

    private func changed(_ change: (inout Self) -> Void) -> Self {
        var copy = self
        change(&copy)
        return copy
    }
}
