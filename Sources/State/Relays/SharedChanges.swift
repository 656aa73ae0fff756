internal import Synchronization

/// The changes of shared values by a reducer in a test store, and the changes that the test expects.
///
/// While an action is reduced in ``note(_:)``, each change is recorded. In the asserting closure, which runs in
/// ``assertChanges(_:)``, values are as before the action, and the closure's changes to them are only compared. Both apply to
/// code that is called inside, not to other tasks and threads.
package final class SharedChanges: Sendable {
    @TaskLocal private static var recording: SharedChanges?
    @TaskLocal private static var reading: SharedChanges?
    /// True once this process has had a test store. Without one, accesses skip the task-local lookup.
    private static let isUsed = Atomic(false)

    /// The recorded changes, under the lock.
    private struct Contents {
        /// The values in the order of their first change.
        var order: [ObjectIdentifier] = []
        var recorded: [ObjectIdentifier: any AnySharedChange] = [:]
    }

    private let contents = Mutex(Contents())

    package init() { Self.isUsed.store(true, ordering: .relaxed) }

    /// True if changes are recorded for a test in this task.
    package static var isRecording: Bool { isUsed.load(ordering: .relaxed) && recording != nil }
    /// True if a test asserts changes in this task.
    package static var isViewed: Bool { isUsed.load(ordering: .relaxed) && reading != nil }
    /// The recorder of changes in this task.
    package static var recorder: SharedChanges? { recording }
    /// The asserting test in this task.
    package static var viewer: SharedChanges? { reading }

    package func recordChanges<Result>(_ reduce: () -> Result) -> Result {
        Self.$recording.withValue(self, operation: reduce)
    }

    package func assertChanges<Result>(_ assert: () throws -> Result) rethrows -> Result {
        try Self.$reading.withValue(self, operation: assert)
    }

    /// Descriptions of the differences between expected and actual values, one per value.
    package var differences: [String] { all.compactMap(\.difference) }
    /// Descriptions of the changes, one per value.
    package var changes: [String] { all.compactMap(\.change) }
    /// True if an expected value differs from the value before the action.
    package var isExpectingChange: Bool { all.contains { $0.isExpectingChange } }

    /// Copies the changes for another closure that asserts them.
    ///
    /// - Parameter fromEnd: whether the closure finds the values as they are after the action.
    package func copy(fromEnd: Bool) -> SharedChanges {
        let copy = SharedChanges()
        let current = contents.withLock { $0 }
        copy.contents.withLock { contents in
            contents.order = current.order
            contents.recorded = current.recorded.mapValues { $0.copy(fromEnd: fromEnd) }
        }
        return copy
    }

    private var all: [any AnySharedChange] {
        contents.withLock { contents in contents.order.compactMap { contents.recorded[$0] } }
    }

    // MARK: For shared values

    /// Records a change; `owner` retains its value.
    package func recordChange<Value: Sendable>(
        _ owner: any AnyObject & Sendable, from before: Value, to after: Value, named name: @autoclosure () -> String
    ) {
        let id = ObjectIdentifier(owner)
        let first = contents.withLock { $0.recorded[id] as? SharedChange<Value> }
        let change = SharedChange(
            owner: owner, name: first?.name ?? name(), before: first?.before ?? before, after: after,
            expected: first?.before ?? before)
        storeChange(change, id)
    }

    /// Returns the recorded change with the value that the test expects; nil if there is none.
    package func change<Value: Sendable>(of owner: any AnyObject & Sendable) -> SharedChange<Value>? {
        contents.withLock { $0.recorded[ObjectIdentifier(owner)] as? SharedChange<Value> }
    }

    /// Changes the value that the test expects.
    package func expect<Value: Sendable, Result>(
        _ owner: any AnyObject & Sendable, now: Value, named name: @autoclosure () -> String,
        _ body: (inout Value) throws -> Result
    ) rethrows -> Result {
        var change =
            self.change(of: owner)
            ?? SharedChange(owner: owner, name: name(), before: now, after: now, expected: now)
        let result = try body(&change.expected)
        storeChange(change, ObjectIdentifier(owner))
        return result
    }

    private func storeChange<Value: Sendable>(_ change: SharedChange<Value>, _ id: ObjectIdentifier) {
        // The replaced change is released outside the lock.
        let old = contents.withLock { contents in
            if contents.recorded[id] == nil { contents.order.append(id) }
            return contents.recorded.updateValue(change, forKey: id)
        }
        withExtendedLifetime(old) {}
    }
}

/// A change of a value of any type.
private protocol AnySharedChange: Sendable {
    var difference: String? { get }
    var change: String? { get }
    var isExpectingChange: Bool { get }
    func copy(fromEnd: Bool) -> any AnySharedChange
}

/// A shared value before and after an action, and its value as expected by a test.
package struct SharedChange<Value: Sendable>: Sendable {
    /// Retained, so that its identity stays unique.
    let owner: any AnyObject & Sendable
    let name: String
    let before, after: Value
    package fileprivate(set) var expected: Value
}

extension SharedChange: AnySharedChange {
    var difference: String? {
        Self.areEqual(expected, after) ? nil : "\(name): expected \(text(expected)), is \(text(after))"
    }
    var change: String? {
        Self.areEqual(before, after) ? nil : "\(name): was \(text(before)), is \(text(after))"
    }
    var isExpectingChange: Bool { !Self.areEqual(expected, before) }

    fileprivate func copy(fromEnd: Bool) -> any AnySharedChange {
        var copy = self
        copy.expected = fromEnd ? after : before
        return copy
    }

    private func text(_ value: Value) -> String { String(reflecting: value) }

    /// Compares by `==`; values that are not `Equatable` compare by their descriptions.
    private static func areEqual(_ left: Value, _ right: Value) -> Bool {
        func compare<Other: Equatable>(_: Other.Type) -> Bool { left as! Other == right as! Other }
        guard let type = Value.self as? any Equatable.Type else {
            return String(reflecting: left) == String(reflecting: right)
        }
        return compare(type)
    }
}
