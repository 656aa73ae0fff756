/// What the filters of one state may come to, and who brings another one.
struct FilterTerms: Sendable {
    /// Different filters of the state; each costs time with every version.
    var most = ServerLimits().filtersPerState
    /// Bytes that all of them may hold beyond the newest version.
    var byteLimit = ServerLimits().filterBytesPerState
    /// In whose share a filter counts that nobody has brought before; empty for readers in the server's own process.
    var bringers: [Party] = []

    init() {}

    init(_ limits: ServerLimits, _ parties: Parties) {
        most = limits.filtersPerState
        byteLimit = limits.filterBytesPerState
        bringers = parties.all
    }

    /// How many of them one party may have brought.
    func share(of party: Party) -> Int {
        switch party {
        case .server: most
        case .connection, .client: max(1, most / 16)
        case .principal, .host: max(1, most / 4)
        }
    }
}
