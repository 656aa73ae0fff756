import Synchronization

#if DEBUG && canImport(Testing)
    import Testing
#endif

/// A box with the value of a key that is known only at run time.
protocol DependencyBox: Sendable {}

/// A typed box, so that a nil value differs from a missing one.
struct DependencyValueBox<Key: TestDependencyKey>: DependencyBox {
    let value: Key.Value
}

extension DependencyBox {
    func value<Key: TestDependencyKey>(of key: Key.Type) -> Key.Value? { (self as? DependencyValueBox<Key>)?.value }
}

/// Values of dependencies, each created on first use.
final class DependencyCache: Sendable {
    private let values = Mutex<[ObjectIdentifier: any DependencyBox]>([:])

    func value<Key: TestDependencyKey>(of key: Key.Type, _ make: () -> Key.Value) -> Key.Value {
        let id = ObjectIdentifier(key)
        if let known = values.withLock({ $0[id] })?.value(of: key) { return known }
        let value = make()
        // Created outside the lock, since it may use other dependencies; the first one stored stays.
        return values.withLock { values in
            if let known = values[id]?.value(of: key) { return known }
            values[id] = DependencyValueBox<Key>(value: value)
            return value
        }
    }
}

extension DependencyCache {
    #if DEBUG && canImport(Testing)
        /// The values of the most recent tests; those of older tests are dropped.
        private static let tests = Mutex<(values: [Test.ID: DependencyCache], order: [Test.ID])>(([:], []))
        private static let testLimit = 1_000

        /// The values of the running test; nil without one, and in a test with arguments, whose runs cannot be
        /// distinguished.
        static var ofRunningTest: DependencyCache? {
            guard let test = Test.current, !test.isParameterized else { return nil }
            return tests.withLock { tests in
                if let known = tests.values[test.id] { return known }
                if tests.order.count == testLimit { tests.values[tests.order.removeFirst()] = nil }
                let cache = DependencyCache()
                tests.values[test.id] = cache
                tests.order.append(test.id)
                return cache
            }
        }
    #else
        static var ofRunningTest: DependencyCache? { nil }
    #endif
}

/// The live values, each created once per process.
enum LiveDependencyCache {
    private static let cache = DependencyCache()

    static func value<Key: TestDependencyKey>(of key: Key.Type) -> Key.Value {
        guard let live = key as? any DependencyKey.Type, let box = box(of: live) as? DependencyValueBox<Key> else {
            DependencyValues.reportUnimplemented(
                "The dependency \(Key.self) has no live value: conform it to 'DependencyKey'.")
            return Key.testValue
        }
        return box.value
    }

    private static func box<Key: DependencyKey>(of key: Key.Type) -> any DependencyBox {
        DependencyValueBox<Key>(value: cache.value(of: key) { key.liveValue })
    }
}
