/// An enum whose cases have key paths: `\.child`, `\.ioResult.success`.
///
/// `@CasePathable` writes the conformance.
public protocol CasePathable: SendableMetatype {
    /// A type with one property for each case, an ``AnyCasePath``.
    associatedtype AllCasePaths
    /// The paths of all cases, by their names.
    static var allCasePaths: AllCasePaths { get }
}

extension Result: CasePathable {
    /// The key paths `\.success` and `\.failure`, as in `\.loaded.success`.
    public struct AllCasePaths: Sendable {
        /// The path of the value.
        public var success: AnyCasePath<Result, Success> {
            AnyCasePath(name: "success", embed: { .success($0) }, extract: { try? $0.get() })
        }
        /// The path of the error.
        public var failure: AnyCasePath<Result, Failure> {
            AnyCasePath(
                name: "failure", embed: { .failure($0) },
                extract: { if case .failure(let error) = $0 { error } else { nil } })
        }
    }

    /// The paths of both cases.
    public static var allCasePaths: AllCasePaths { AllCasePaths() }
}

extension CasePathable {
    /// Returns true if the value is the case of the key path.
    public func `is`<Value>(_ path: CaseKeyPath<Self, Value>) -> Bool {
        AnyCasePath(path).extract(self) != nil
    }

    /// The payload of a case, by its name: `destination.detail`, for an enum that is also `@dynamicMemberLookup`.
    public subscript<Value>(dynamicMember path: KeyPath<AllCasePaths, AnyCasePath<Self, Value>>) -> Value? {
        Self.allCasePaths[keyPath: path].extract(self)
    }

    /// The payload of the case of the key path; nil when the value is another case.
    public subscript<Value>(case path: CaseKeyPath<Self, Value>) -> Value? {
        AnyCasePath(path).extract(self)
    }
}
