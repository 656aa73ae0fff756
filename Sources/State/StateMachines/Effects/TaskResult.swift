/// The result of asynchronous work: a value, or an error that need not be `Sendable` by type.
@CasePathable
public enum TaskResult<Success: Sendable>: Sendable {
    /// The work returned this value.
    case success(Success)
    /// The work threw this error, which may be a cancellation.
    case failure(any Error)

    /// Runs the work and stores its value or error.
    public init(catching work: @Sendable () async throws -> Success) async {
        do {
            self = .success(try await work())
        } catch {
            self = .failure(error)
        }
    }

    /// Converts a `Result`.
    public init(_ result: Result<Success, any Error>) {
        switch result {
        case .success(let value): self = .success(value)
        case .failure(let error): self = .failure(error)
        }
    }

    /// Returns the value, or throws the error.
    public var value: Success {
        get throws {
            switch self {
            case .success(let value): return value
            case .failure(let error): throw error
            }
        }
    }

    /// Returns the result with a transformed value. A failure stays unchanged.
    public func map<Other: Sendable>(_ transform: (Success) -> Other) -> TaskResult<Other> {
        switch self {
        case .success(let value): .success(transform(value))
        case .failure(let error): .failure(error)
        }
    }
}

extension TaskResult: Equatable where Success: Equatable {
    /// Compares errors with `==` if they have it. Others are equal when their types and descriptions are equal.
    public static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.success(let left), .success(let right)): left == right
        case (.failure(let left), .failure(let right)): areEqual(left, right)
        default: false
        }
    }

    private static func areEqual(_ left: any Error, _ right: any Error) -> Bool {
        func compare<Value: Equatable>(_ left: Value, _ right: Any) -> Bool { left == right as? Value }
        if let left = left as? any Equatable { return compare(left, right) }
        return type(of: left) == type(of: right) && String(reflecting: left) == String(reflecting: right)
    }
}
