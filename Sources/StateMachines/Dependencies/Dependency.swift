/// A dependency of a feature: `@Dependency(\.apiClient) var apiClient`.
///
/// Its value is that of the store, host or test store that runs the feature, or else the one in force where the feature
/// was made.
@propertyWrapper
public struct Dependency<Value>: Sendable {
    private let values = DependencyValues.current
    private let path: any KeyPath<DependencyValues, Value> & Sendable
    private let location: CodeLocation

    /// Names the dependency by its property of ``DependencyValues``; the value is looked up at each use.
    public init(
        _ path: any KeyPath<DependencyValues, Value> & Sendable,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) {
        self.path = path
        location = CodeLocation(fileID, filePath, line, column)
    }

    /// A dependency that is named by its key.
    public init<Key: TestDependencyKey>(
        _ key: Key.Type,
        fileID: StaticString = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        column: UInt = #column
    ) where Key.Value == Value {
        self.init(\DependencyValues.[Named<Key>()], fileID: fileID, filePath: filePath, line: line, column: column)
    }

    /// The value in force. A test that uses one without a value for tests fails.
    public var wrappedValue: Value {
        values.overridden(by: .current).read(path, at: location)
    }
}

/// A key as the argument of a key path, which has to be hashable.
struct Named<Key: TestDependencyKey>: Hashable, Sendable {}

extension DependencyValues {
    fileprivate subscript<Key: TestDependencyKey>(_: Named<Key>) -> Key.Value { self[Key.self] }
}
