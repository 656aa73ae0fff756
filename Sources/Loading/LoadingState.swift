/// Where a load stands.
public enum LoadingState<Value: Hashable & Sendable>: Hashable, Sendable {
    /// Nothing was loaded yet, or the load was cancelled.
    case idle
    /// A load is under way; nil as long as it tells no progress.
    case loading(LoadingProgress?)
    /// The load failed. ``error`` is the error as it was thrown.
    case failure(HashableError)
    /// There is a value.
    case loaded(Value)

    /// The failure with an error of any type.
    public static func failure(_ error: any Error & Sendable) -> Self { .failure(HashableError(error)) }

    /// Whether a load is under way, with progress or without.
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

/// How far a load has come, as far as it tells.
public struct LoadingProgress: Hashable, Sendable {
    /// True when the load asks to be cancelled: who shows it calls `cancel()` on the loader.
    public let isCanceled: Bool?
    /// What is being done, in words for users; nil for nothing to say.
    public let message: String?
    /// From 0 to 100; what is given beyond is brought into that range.
    public let percent: Int?

    /// - Parameters:
    ///   - isCanceled: true asks whoever shows it to cancel the load.
    ///   - message: what is being done, in words for users.
    ///   - percent: from 0 to 100; less counts as 0, more as 100.
    public init(isCanceled: Bool? = nil, message: String? = nil, percent: Int? = nil) {
        self.isCanceled = isCanceled
        self.message = message
        self.percent = percent.map { min(max($0, 0), 100) }
    }
}
