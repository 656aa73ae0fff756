/// The limits for the filters of one state, and the quota scopes of a new filter.
package struct FilterQuota: Sendable {
    /// The default number of different filters of the state; each costs time with every version.
    package static let defaultMaximumFilters = 1_000
    package var maximumFilters = FilterQuota.defaultMaximumFilters
    /// The default number of bytes that all filters may hold beyond the newest version.
    package static let defaultByteLimit = 16 << 20
    package var byteLimit = FilterQuota.defaultByteLimit
    /// The quota scopes in which a new filter counts; empty for readers in the server's process.
    package var scopes: [QuotaScope] = []

    package init() {}

    /// Returns the number of filters that one quota scope may create.
    func share(of scope: QuotaScope) -> Int {
        switch scope {
        case .server: maximumFilters
        case .connection, .client: max(1, maximumFilters / 16)
        case .principal, .host: max(1, maximumFilters / 4)
        case .network: max(1, maximumFilters / 2)
        }
    }
}
