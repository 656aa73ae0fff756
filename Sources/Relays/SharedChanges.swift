internal import Synchronization

/// What a reducer does to shared values in a test store, and what the test expects of it.
///
/// While an action is reduced in ``note(_:)``, each change is noted. In the closure that asserts it, which runs in ``look(_:)``, the
/// values are what they were before the action, and what the closure makes of them is only compared. Both hold for the code that
/// is called inside, and not for other tasks and threads.
package final class SharedChanges: Sendable {
    @TaskLocal private static var noting: SharedChanges?
    @TaskLocal private static var looking: SharedChanges?
    /// Whether there has been a test store in this process: others do not pay for the look at the task.
    private static let isUsed = Atomic(false)

    private struct Contents {
        /// In the order in which they were changed for the first time.
        var order: [ObjectIdentifier] = []
        var noted: [ObjectIdentifier: any AnySharedChange] = [:]
    }

    private let contents = Mutex(Contents())

    package init() { Self.isUsed.store(true, ordering: .relaxed) }

    /// Whether a test is told of changes here.
    package static var isNoted: Bool { isUsed.load(ordering: .relaxed) && noting != nil }
    /// Whether a test asserts something here.
    package static var isViewed: Bool { isUsed.load(ordering: .relaxed) && looking != nil }
    /// The test that is told of changes here.
    package static var noter: SharedChanges? { noting }
    /// The test that asserts something here.
    package static var viewer: SharedChanges? { looking }

    package func note<Result>(_ reduce: () -> Result) -> Result { Self.$noting.withValue(self, operation: reduce) }

    package func look<Result>(_ assert: () throws -> Result) rethrows -> Result {
        try Self.$looking.withValue(self, operation: assert)
    }

    /// The differences between what is expected and what is, a text each.
    package var differences: [String] { all.compactMap(\.difference) }
    /// What was changed, a text each.
    package var changes: [String] { all.compactMap(\.change) }
    /// Whether something else is expected than what was before.
    package var isExpectingChange: Bool { all.contains { $0.isExpectingChange } }

    /// The same changes, for another closure that asserts them.
    ///
    /// - Parameter fromEnd: whether the closure finds the values as they are after the action.
    package func again(fromEnd: Bool) -> SharedChanges {
        let copy = SharedChanges()
        let noted = contents.withLock { $0 }
        copy.contents.withLock { contents in
            contents.order = noted.order
            contents.noted = noted.noted.mapValues { $0.again(fromEnd: fromEnd) }
        }
        return copy
    }

    private var all: [any AnySharedChange] {
        contents.withLock { contents in contents.order.compactMap { contents.noted[$0] } }
    }

    // MARK: For shared values

    /// Notes a change; `place` keeps its value.
    package func note<Value: Sendable>(
        _ place: any AnyObject & Sendable, from before: Value, to after: Value, named name: @autoclosure () -> String
    ) {
        let id = ObjectIdentifier(place)
        let first = contents.withLock { $0.noted[id] as? SharedChange<Value> }
        let change = SharedChange(
            place: place, name: first?.name ?? name(), before: first?.before ?? before, after: after,
            expected: first?.before ?? before)
        keep(change, id)
    }

    /// The value that the test expects, nil where it has said nothing of it.
    package func change<Value: Sendable>(of place: any AnyObject & Sendable) -> SharedChange<Value>? {
        contents.withLock { $0.noted[ObjectIdentifier(place)] as? SharedChange<Value> }
    }

    /// Changes the value that the test expects.
    package func expect<Value: Sendable, Result>(
        _ place: any AnyObject & Sendable, now: Value, named name: @autoclosure () -> String,
        _ body: (inout Value) throws -> Result
    ) rethrows -> Result {
        var change =
            self.change(of: place)
            ?? SharedChange(place: place, name: name(), before: now, after: now, expected: now)
        let result = try body(&change.expected)
        keep(change, ObjectIdentifier(place))
        return result
    }

    private func keep<Value: Sendable>(_ change: SharedChange<Value>, _ id: ObjectIdentifier) {
        // What was there is released out of the lock.
        let old = contents.withLock { contents in
            if contents.noted[id] == nil { contents.order.append(id) }
            return contents.noted.updateValue(change, forKey: id)
        }
        withExtendedLifetime(old) {}
    }
}

private protocol AnySharedChange: Sendable {
    var difference: String? { get }
    var change: String? { get }
    var isExpectingChange: Bool { get }
    func again(fromEnd: Bool) -> any AnySharedChange
}

/// A shared value before and after an action, and what a test expects it to be.
package struct SharedChange<Value: Sendable>: Sendable {
    /// Kept, so that its identity is that of no other.
    let place: any AnyObject & Sendable
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

    fileprivate func again(fromEnd: Bool) -> any AnySharedChange {
        var copy = self
        copy.expected = fromEnd ? after : before
        return copy
    }

    private func text(_ value: Value) -> String { String(reflecting: value) }

    /// Values without `==` by their texts.
    private static func areEqual(_ left: Value, _ right: Value) -> Bool {
        func compare<Other: Equatable>(_: Other.Type) -> Bool { left as! Other == right as! Other }
        guard let type = Value.self as? any Equatable.Type else {
            return String(reflecting: left) == String(reflecting: right)
        }
        return compare(type)
    }
}
