/// The dependencies of the current task. An extension adds a property for each.
public struct DependencyValues: Sendable {
    @TaskLocal static var current = DependencyValues()
    /// True while values are being replaced: a read in order to change a value does not count as a use.
    @TaskLocal private static var isPreparing = false
    @TaskLocal private static var location: CodeLocation?

    private var values: [ObjectIdentifier: any DependencyBox] = [:]
    private var ownContext: DependencyContext?
    /// The test values created so far; nil where their lifetime is unknown.
    private var cache: DependencyCache?
    private var ownThrottles: ThrottleRegistry?
    /// The path in the tree of reducers at which effects are created.
    private(set) var path: [AnyID] = []

    init() {}

    /// The throttles of the reducing machine.
    var throttles: ThrottleRegistry { ownThrottles ?? .ofProcess }

    /// Returns the same values, for a machine.
    func forMachine() -> DependencyValues {
        var values = self
        values.ownThrottles = ThrottleRegistry()
        return values
    }

    /// The source of the values that were not replaced. In a process that runs tests it is `.test`.
    public var context: DependencyContext {
        get { ownContext ?? DependencyContext.ofProcess }
        set { ownContext = newValue }
    }

    /// The value of a dependency: its replacement, or the value of the ``context``.
    ///
    /// A live value is created once per process. A test value is created once per test, within a test store and within
    /// ``withDependencies(_:operation:)``; elsewhere, as in a test with arguments, at each use.
    public subscript<Key: TestDependencyKey>(key: Key.Type) -> Key.Value {
        get {
            if let value = values[ObjectIdentifier(key)]?.value(of: key) { return value }
            switch context {
            case .test:
                // A value that is only read to be changed is not stored, because a later use of it would not be
                // reported.
                guard !Self.isPreparing, let cache = cache ?? DependencyCache.ofRunningTest else {
                    return key.testValue
                }
                return cache.value(of: key) { key.testValue }
            case .live: return LiveDependencyCache.value(of: key)
            }
        }
        set { values[ObjectIdentifier(key)] = DependencyValueBox<Key>(value: newValue) }
    }

    /// Returns the same values, with test values that are created once from here on.
    func keepingTestValues() -> DependencyValues {
        var values = self
        if values.cache == nil { values.cache = DependencyCache.ofRunningTest ?? DependencyCache() }
        return values
    }

    /// Returns the values, overridden by those of `newer`.
    func overridden(by newer: DependencyValues) -> DependencyValues {
        if values.isEmpty, ownContext == nil, cache == nil { return newer }
        var result = newer
        result.cache = newer.cache ?? cache
        if result.values.isEmpty {
            result.values = values
        } else {
            result.values.merge(values) { newer, _ in newer }
        }
        result.ownContext = newer.ownContext ?? ownContext
        return result
    }

    /// Replaces values without counting reads in `update` as uses.
    func changed(by update: (inout DependencyValues) throws -> Void) rethrows -> DependencyValues {
        var values = self
        try Self.$isPreparing.withValue(true) { try update(&values) }
        return values
    }

    static func withPath<Result>(_ path: [AnyID], _ work: () -> Result) -> Result {
        var values = current
        values.path += path
        return $current.withValue(values, operation: work)
    }

    /// Reads a value, and records the location of the use for reports about it.
    func read<Value>(_ path: KeyPath<DependencyValues, Value>, at location: CodeLocation) -> Value {
        Self.$location.withValue(location) { self[keyPath: path] }
    }

    static func reportUnimplemented(_ message: String) {
        guard !isPreparing else { return }
        reportIssue(message, at: location ?? .unknown)
    }
}
