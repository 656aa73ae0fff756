/// A filter that selects a part of a streamed state and the versions to deliver. The server evaluates it once for all subscribers
/// with the same filter.
///
///     todos.observeState(filter: .path("/players/7").distinct().atMost(every: .milliseconds(100)), as: Player.self)
///
/// An invalid filter, such as a path without a slash, ends its stream with `invalidArguments`.
public struct StreamFilter: Sendable, Hashable {
    /// The pointer to the selected part (RFC 6901); nil for the whole state.
    package internal(set) var path: String?
    package internal(set) var isDistinct = false
    package internal(set) var minimumIntervalMilliseconds: Int?
    package internal(set) var condition: Condition?

    /// True if a value that equals the last one is skipped.
    package var skipsEqual: Bool { isDistinct || path != nil }

    /// A condition on a part of the state that a version must satisfy.
    package struct Condition: Sendable, Hashable {
        let path: String
        let test: StreamCondition
    }

    /// True if every version of the whole state is delivered, as a whole value: `{}` in the protocol.
    package var acceptsEverything: Bool { self == Self() }

    /// Creates a filter that delivers every version of the whole state.
    public init() {}

    /// Selects only the part at a JSON pointer (RFC 6901), as `/players/7`; it is sent when it has changed. A part that does not
    /// exist is null: a reader of an optional type gets nil, another one waits until it exists.
    public static func path(_ pointer: String) -> Self { Self().path(pointer) }
    /// Selects only the part at a path whose steps may contain any characters.
    public static func path(steps: [String]) -> Self { Self().path(steps: steps) }
    /// Delivers only versions whose part at `pointer` satisfies the condition; `""` is the whole state.
    public static func `where`(_ pointer: String, _ condition: StreamCondition) -> Self {
        Self().where(pointer, condition)
    }
    /// Skips values that equal the previous one.
    public static func distinct() -> Self { Self().distinct() }
    /// Delivers at most one value per interval (at least 1 ms, at most 1 hour); the last value is never lost.
    public static func atMost(every interval: Duration) -> Self { Self().atMost(every: interval) }

    /// Returns the filter with a path to the selected part.
    public func path(_ pointer: String) -> Self { changed { $0.path = pointer } }

    /// Returns the filter with a path whose steps may contain any characters.
    public func path(steps: [String]) -> Self {
        path(
            steps.map { step in
                var text: [UInt8] = [0x2F]
                for byte in step.utf8 { JSONPointer.appendEscaped(byte, to: &text) }
                return String(decoding: text, as: UTF8.self)
            }.joined())
    }

    /// Returns the filter with a condition on the part at `pointer`.
    public func `where`(_ pointer: String, _ condition: StreamCondition) -> Self {
        changed { $0.condition = Condition(path: pointer, test: condition) }
    }

    /// Returns the filter that also skips values equal to the previous one.
    public func distinct() -> Self { changed { $0.isDistinct = true } }

    /// Returns the filter with a maximum rate.
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
