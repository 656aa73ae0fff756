/// How far a load has come, as far as it tells.
public struct LoadingProgress: Hashable, Sendable {
    /// True when the load asks to be cancelled: who shows it calls `cancel()` on the loader.
    public let isCanceled: Bool?
    public let message: String?
    /// From 0 to 100; what is given beyond is brought into that range.
    public let percent: Int?

    public init(isCanceled: Bool? = nil, message: String? = nil, percent: Int? = nil) {
        self.isCanceled = isCanceled
        self.message = message
        self.percent = percent.map { min(max($0, 0), 100) }
    }
}
