internal import Deltas
internal import Synchronization
internal import TrebuchetWire

/// The newest value of a stream whose type knows its changes: they are applied to it, and it is never decoded anew.
///
/// What comes is taken on the client's reactor as it is; the reader who asks first decodes and applies it for all.
package protocol KeptState<Value>: AnyObject, Sendable {
    associatedtype Value

    /// Takes a value in JSON.
    func take(_ whole: [UInt8])
    /// Takes the changes from the value that was taken last; false when there is none, or too much waits to be applied.
    func take(changes: [UInt8]) -> Bool
    /// The newest value, with how many were taken until then; nil before the first one.
    ///
    /// Throws `ChangesMisfit` when changes do not fit, and what decoding throws.
    func newest(userInfo: [CodingUserInfoKey: any Sendable]) throws -> (value: Value, count: UInt64)?
}

/// Changes that came from the server do not fit the value that is here.
struct ChangesMisfit: Error {}

enum KeptStates {
    /// For a stream of values of a type; nil unless the type knows its changes, which is seen here and nowhere else.
    static func make<Value>(for type: Value.Type) -> (any KeptState<Value>)? {
        func make<State: DeltaState>(_ type: State.Type) -> any KeptState { AppliedState<State>() }
        return (type as? any DeltaState.Type).map { make($0) } as? any KeptState<Value>
    }
}

/// Keeps a value and the changes that nobody has asked for yet.
final class AppliedState<State: DeltaState>: KeptState {
    /// Changes that wait for a reader, at most. Beyond that, or when they are longer than the value was, a whole value costs
    /// less.
    private static var mostChanges: Int { 1024 }
    private static var leastChangeBytes: Int { 64 << 10 }

    private enum Base {
        case none
        case whole([UInt8])
        case value(State)
    }

    private struct Content {
        var base = Base.none
        /// Which value the base is.
        var baseCount: UInt64 = 0
        /// What leads from the base to the newest value.
        var changes: [[UInt8]] = []
        var changeBytes = 0
        var wholeBytes = 0

        var count: UInt64 { baseCount + UInt64(changes.count) }

        mutating func begin(with base: Base, count: UInt64) {
            let applied = Int(count - baseCount)
            changeBytes -= changes[..<applied].reduce(0) { $0 + $1.count }
            changes.removeFirst(applied)
            self.base = base
            baseCount = count
        }
    }

    private let content = Mutex(Content())

    func take(_ whole: [UInt8]) {
        content.withLock { content in
            let count = content.count + 1
            content = Content(base: .whole(whole), baseCount: count, wholeBytes: whole.count)
        }
    }

    func take(changes: [UInt8]) -> Bool {
        content.withLock { content in
            if case .none = content.base { return false }
            guard content.changes.count < Self.mostChanges,
                content.changeBytes + changes.count <= max(Self.leastChangeBytes, content.wholeBytes)
            else { return false }
            content.changes.append(changes)
            content.changeBytes += changes.count
            return true
        }
    }

    func newest(userInfo: [CodingUserInfoKey: any Sendable]) throws -> (value: State, count: UInt64)? {
        // Decoded out of the lock, which the reactor takes too.
        let found = content.withLock { $0 }
        let coder = ValueCoder(userInfo: userInfo)
        var value: State
        switch found.base {
        case .none: return nil
        case .whole(let text): value = try text.withUnsafeBytes { try coder.decode(State.self, from: $0) }
        case .value(let present): value = present
        }
        do {
            for changes in found.changes {
                value = try changes.withUnsafeBytes { try value.applying($0, with: coder) }
            }
        } catch {
            throw ChangesMisfit()
        }
        content.withLock { content in
            // Another reader may have come further, or a whole value come in between.
            if content.baseCount <= found.count { content.begin(with: .value(value), count: found.count) }
        }
        return (value, found.count)
    }
}
