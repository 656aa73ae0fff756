import Synchronization

/// The dependencies that are in force in the current task; a property is added for each in an extension.
public struct DependencyValues: Sendable {
    @TaskLocal static var current = DependencyValues()
    /// While values are being replaced, reading one in order to change it does not count as a use.
    @TaskLocal private static var isPreparing = false
    @TaskLocal private static var location: CodeLocation?

    private var values: [ObjectIdentifier: any Sendable] = [:]
    private var ownContext: DependencyContext?
    /// The place in the tree of reducers at which effects are made.
    private(set) var path: [AnyID] = []

    init() {}

    /// Which values dependencies have that nobody replaced. In a process that runs tests it is `.test`.
    public var context: DependencyContext {
        get { ownContext ?? DependencyContext.ofProcess }
        set { ownContext = newValue }
    }

    /// The value of a dependency: the one it was replaced by, or the one of the ``context``.
    public subscript<Key: TestDependencyKey>(key: Key.Type) -> Key.Value {
        get {
            if let value = values[ObjectIdentifier(key)] as? Key.Value { return value }
            switch context {
            case .test: return key.testValue
            case .live: return LiveValues.shared.value(of: key)
            }
        }
        set { values[ObjectIdentifier(key)] = newValue }
    }

    /// The values with those of `newer` over them.
    func overridden(by newer: DependencyValues) -> DependencyValues {
        if values.isEmpty, ownContext == nil { return newer }
        var result = newer
        if result.values.isEmpty {
            result.values = values
        } else {
            result.values.merge(values) { newer, _ in newer }
        }
        result.ownContext = newer.ownContext ?? ownContext
        return result
    }

    /// Replaces values without counting what is read on the way as used.
    func changed(by update: (inout DependencyValues) throws -> Void) rethrows -> DependencyValues {
        var values = self
        try Self.$isPreparing.withValue(true) { try update(&values) }
        return values
    }

    static func within<Result>(_ station: [AnyID], _ work: () -> Result) -> Result {
        var values = current
        values.path += station
        return $current.withValue(values, operation: work)
    }

    /// Reads a value, noting where it is used for reports about it.
    func read<Value>(_ path: KeyPath<DependencyValues, Value>, at location: CodeLocation) -> Value {
        Self.$location.withValue(location) { self[keyPath: path] }
    }

    static func reportUnimplemented(_ message: String) {
        guard !isPreparing else { return }
        reportIssue(message, at: location ?? .unknown)
    }
}

/// The live values, each made once.
private final class LiveValues: Sendable {
    static let shared = LiveValues()
    private let values = Mutex<[ObjectIdentifier: any Sendable]>([:])

    func value<Key: TestDependencyKey>(of key: Key.Type) -> Key.Value {
        let id = ObjectIdentifier(key)
        if let known = values.withLock({ $0[id] }) as? Key.Value { return known }
        guard let key = key as? any DependencyKey.Type, let value = Self.make(key) as? Key.Value else {
            DependencyValues.reportUnimplemented(
                "The dependency \(Key.self) has no live value: conform it to 'DependencyKey'.")
            return Key.testValue
        }
        // Made outside of the lock, since it may use other dependencies; the first one made stays.
        return values.withLock { values in
            if let known = values[id] as? Key.Value { return known }
            values[id] = value
            return value
        }
    }

    private static func make<Key: DependencyKey>(_ key: Key.Type) -> any Sendable { key.liveValue }
}
