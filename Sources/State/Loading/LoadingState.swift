/// The state of a load.
public enum LoadingState<Value: Hashable & Sendable>: Hashable, Sendable {
    /// No load has begun, or the load was cancelled.
    case idle
    /// A load is running; nil while it reports no progress.
    case loading(LoadingProgress?)
    /// The load failed. ``error`` is the error as it was thrown.
    case failure(HashableError)
    /// The value is loaded.
    case loaded(Value)

    /// Returns a failure with an error of any type.
    public static func failure(_ error: any Error & Sendable) -> Self { .failure(HashableError(error)) }

    /// A Boolean value that indicates whether a load is running, with progress or without.
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

/// The reported progress of a load.
public struct LoadingProgress: Hashable, Sendable {
    /// True when the load requests its cancellation: a view then calls `cancel()` on the loader.
    public let isCanceled: Bool?
    /// The current activity, in words for users; nil for none.
    public let message: String?
    /// The progress in percent, clamped to 0 through 100.
    public let percent: Int?

    /// Creates a progress report.
    ///
    /// - Parameters:
    ///   - isCanceled: true requests the cancellation of the load by its view.
    ///   - message: the current activity, in words for users.
    ///   - percent: from 0 to 100; less counts as 0, more as 100.
    public init(isCanceled: Bool? = nil, message: String? = nil, percent: Int? = nil) {
        self.isCanceled = isCanceled
        self.message = message
        self.percent = percent.map { min(max($0, 0), 100) }
    }
}
