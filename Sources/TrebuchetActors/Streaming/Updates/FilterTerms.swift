/// What the filters of one state may come to, and who brings another one.
package struct FilterTerms: Sendable {
    /// Different filters of the state; each costs time with every version.
    package static let usualMost = 1_000
    package var most = FilterTerms.usualMost
    /// Bytes that all of them may hold beyond the newest version.
    package static let usualBytes = 16 << 20
    package var byteLimit = FilterTerms.usualBytes
    /// In whose share a filter counts that nobody has brought before; empty for readers in the server's own process.
    package var bringers: [Party] = []

    package init() {}

    /// How many of them one party may have brought.
    func share(of party: Party) -> Int {
        switch party {
        case .server: most
        case .connection, .client: max(1, most / 16)
        case .principal, .host: max(1, most / 4)
        }
    }
}
