/// The limits for the filters of one state, and the quota scopes of a new filter.
package struct FilterQuota: Sendable {
    /// The default number of different filters of the state; each costs time with every version.
    package static let usualMost = 1_000
    package var most = FilterQuota.usualMost
    /// The default number of bytes that all filters may hold beyond the newest version.
    package static let usualBytes = 16 << 20
    package var byteLimit = FilterQuota.usualBytes
    /// The quota scopes in which a new filter counts; empty for readers in the server's process.
    package var bringers: [QuotaScope] = []

    package init() {}

    /// Returns the number of filters that one quota scope may create.
    func share(of party: QuotaScope) -> Int {
        switch party {
        case .server: most
        case .connection, .client: max(1, most / 16)
        case .principal, .host: max(1, most / 4)
        case .network: max(1, most / 2)
        }
    }
}
