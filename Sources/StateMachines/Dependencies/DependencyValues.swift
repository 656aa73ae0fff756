/// The dependencies that are in force in the current task; a property is added for each in an extension.
public struct DependencyValues: Sendable {
    @TaskLocal static var current = DependencyValues()
    /// While values are being replaced, reading one in order to change it does not count as a use.
    @TaskLocal private static var isPreparing = false
    @TaskLocal private static var location: CodeLocation?

    private var values: [ObjectIdentifier: any DependencyBox] = [:]
    private var ownContext: DependencyContext?
    /// The values for tests that were made so far; nil where nothing tells how long to keep them.
    private var made: MadeValues?
    private var ownThrottles: Throttles?
    /// The place in the tree of reducers at which effects are made.
    private(set) var path: [AnyID] = []

    init() {}

    /// Those of the machine that reduces.
    var throttles: Throttles { ownThrottles ?? .ofProcess }

    /// The same values, for a machine.
    func forMachine() -> DependencyValues {
        var values = self
        values.ownThrottles = Throttles()
        return values
    }

    /// Which values dependencies have that nobody replaced. In a process that runs tests it is `.test`.
    public var context: DependencyContext {
        get { ownContext ?? DependencyContext.ofProcess }
        set { ownContext = newValue }
    }

    /// The value of a dependency: the one it was replaced by, or the one of the ``context``.
    ///
    /// A live value is made once in a process. A test value is made once in a test, within a test store and within
    /// ``withDependencies(_:operation:)``; elsewhere, as in a test with arguments, at each use.
    public subscript<Key: TestDependencyKey>(key: Key.Type) -> Key.Value {
        get {
            if let value = values[ObjectIdentifier(key)]?.value(of: key) { return value }
            switch context {
            case .test:
                // One that was only read to be changed is not kept: a use of it would not be reported then.
                guard !Self.isPreparing, let made = made ?? MadeValues.ofRunningTest else { return key.testValue }
                return made.value(of: key) { key.testValue }
            case .live: return LiveValues.value(of: key)
            }
        }
        set { values[ObjectIdentifier(key)] = KeptValue<Key>(value: newValue) }
    }

    /// The same values, with test values that are made once from here on.
    func keepingTestValues() -> DependencyValues {
        var values = self
        if values.made == nil { values.made = MadeValues.ofRunningTest ?? MadeValues() }
        return values
    }

    /// The values with those of `newer` over them.
    func overridden(by newer: DependencyValues) -> DependencyValues {
        if values.isEmpty, ownContext == nil, made == nil { return newer }
        var result = newer
        result.made = newer.made ?? made
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
