/// A dependency of a feature: `@Dependency(\.apiClient) var apiClient`.
///
/// Its value comes from the store, host or test store that runs the feature, or else from the context in which the
/// feature was created.
@propertyWrapper
public struct Dependency<Value>: Sendable {
    private let values = DependencyValues.current
    private let path: any KeyPath<DependencyValues, Value> & Sendable
    private let location: CodeLocation

    /// Refers to a dependency by its property of ``DependencyValues``. The value is looked up at each use.
    public init(
        _ path: any KeyPath<DependencyValues, Value> & Sendable,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) {
        self.path = path
        location = CodeLocation(fileID, filePath, line, column)
    }

    /// Refers to a dependency by its key.
    public init<Key: TestDependencyKey>(
        _ key: Key.Type,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) where Key.Value == Value {
        self.init(
            \DependencyValues.[HashableDependencyKey<Key>()], fileID: fileID, filePath: filePath, line: line,
            column: column)
    }

    /// The current value. In a test, the use of a dependency without a test value fails the test.
    public var wrappedValue: Value {
        values.overridden(by: .current).read(path, at: location)
    }
}

/// A key as the argument of a key path, which must be hashable.
struct HashableDependencyKey<Key: TestDependencyKey>: Hashable, Sendable {}

extension DependencyValues {
    fileprivate subscript<Key: TestDependencyKey>(_: HashableDependencyKey<Key>) -> Key.Value { self[Key.self] }
}
