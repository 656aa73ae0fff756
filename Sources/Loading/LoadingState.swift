/// Where a load stands.
public enum LoadingState<Value: Hashable & Sendable>: Hashable, Sendable {
    /// Nothing was loaded yet, or the load was cancelled.
    case idle
    case loading(LoadingProgress?)
    case failure(HashableError)
    case loaded(Value)

    /// The failure with an error of any type.
    public static func failure(_ error: any Error & Sendable) -> Self { .failure(HashableError(error)) }

    public var isLoading: Bool {
        if case .loading = self { true } else { false }
    }

    /// The loaded value.
    public var value: Value? {
        if case .loaded(let value) = self { value } else { nil }
    }

    /// The error of a failure.
    public var error: (any Error)? {
        if case .failure(let failure) = self { failure.error } else { nil }
    }
}

extension LoadingState: CustomStringConvertible {
    public var description: String {
        switch self {
        case .idle: ".idle"
        case .loading(nil): ".loading"
        case .loading(let progress?):
            ".loading percent: \(progress.percent.map(String.init) ?? "-"), message: \(progress.message ?? "-")"
        case .failure(let error): error.description
        case .loaded(let value): ".loaded(\(value))"
        }
    }
}
