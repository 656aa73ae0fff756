internal import Deltas
internal import Synchronization
internal import TrebuchetWire

/// The newest value of a stream whose type records its changes. Received changes are applied to it, without decoding the whole
/// value again.
///
/// The client's reactor stores received bytes as they are. The first reader that needs the value decodes and applies them for
/// all readers.
package protocol IncrementalState<Value>: AnyObject, Sendable {
    associatedtype Value

    /// Stores a whole value as JSON.
    func setValue(_ whole: [UInt8])
    /// Stores the changes from the last stored value. Returns false if there is no value, or if too many changes are pending.
    func applyChanges(_ changes: [UInt8]) -> Bool
    /// Returns the newest value and the number of values stored until then; nil before the first one.
    ///
    /// Throws `ChangesMismatch` if changes do not fit, and decoding errors.
    func newest(userInfo: [CodingUserInfoKey: any Sendable]) throws -> (value: Value, count: UInt64)?
}

/// The error for changes from the server that do not fit the local value.
struct ChangesMismatch: Error {}

/// Creates the storage for values of types that record their changes.
enum IncrementalStateFactory {
    /// Returns the storage for a stream of values of a type; nil unless the type records its changes. Only this function checks
    /// that.
    static func make<Value>(for type: Value.Type) -> (any IncrementalState<Value>)? {
        func make<State: DeltaState>(_ type: State.Type) -> any IncrementalState { AppliedState<State>() }
        return (type as? any DeltaState.Type).map { make($0) } as? any IncrementalState<Value>
    }
}

/// Stores a value and the changes that are not applied yet.
final class AppliedState<State: DeltaState>: IncrementalState {
    /// The maximum number of pending changes. Beyond it, or if they are longer than the value was, a whole value is cheaper.
    private static var maximumChanges: Int { 1024 }
    private static var minimumChangeBytes: Int { 64 << 10 }

    /// The value to which the pending changes apply.
    private enum Base {
        case none
        case snapshot([UInt8])
        case value(State)
    }

    /// The base value with the pending changes.
    private struct Content {
        var base = Base.none
        /// The count of the base value.
        var baseCount: UInt64 = 0
        /// The changes from the base to the newest value.
        var changes: [[UInt8]] = []
        var changeBytes = 0
        var snapshotBytes = 0

        var count: UInt64 { baseCount + UInt64(changes.count) }

        mutating func setBase(with base: Base, count: UInt64) {
            let applied = Int(count - baseCount)
            changeBytes -= changes[..<applied].reduce(0) { $0 + $1.count }
            changes.removeFirst(applied)
            self.base = base
            baseCount = count
        }
    }

    private let content = Mutex(Content())

    func setValue(_ whole: [UInt8]) {
        content.withLock { content in
            let count = content.count + 1
            content = Content(base: .snapshot(whole), baseCount: count, snapshotBytes: whole.count)
        }
    }

    func applyChanges(_ changes: [UInt8]) -> Bool {
        content.withLock { content in
            if case .none = content.base { return false }
            guard content.changes.count < Self.maximumChanges,
                content.changeBytes + changes.count <= max(Self.minimumChangeBytes, content.snapshotBytes)
            else { return false }
            content.changes.append(changes)
            content.changeBytes += changes.count
            return true
        }
    }

    func newest(userInfo: [CodingUserInfoKey: any Sendable]) throws -> (value: State, count: UInt64)? {
        // Decoded outside the lock, which the reactor also acquires.
        let found = content.withLock { $0 }
        let coder = ValueCoder(userInfo: userInfo)
        var value: State
        switch found.base {
        case .none: return nil
        case .snapshot(let text): value = try text.withUnsafeBytes { try coder.decode(State.self, from: $0) }
        case .value(let present): value = present
        }
        do {
            for changes in found.changes {
                value = try changes.withUnsafeBytes { try value.applying($0, with: coder) }
            }
        } catch {
            throw ChangesMismatch()
        }
        content.withLock { content in
            // Another reader may have stored a newer value, or a whole value may have arrived.
            if content.baseCount <= found.count { content.setBase(with: .value(value), count: found.count) }
        }
        return (value, found.count)
    }
}
