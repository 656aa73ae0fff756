/// The outcome of one or more seeds with a bank.
struct BankOutcome: SeedOutcome {
    var findings: [String] = []
    var transferred = 0
    var refused = 0
    var unknown = 0
    var kills = 0
    var stops = 0
    /// Banks that were opened while the server was killed.
    var killedOpenings = 0
    var accounts = 0

    mutating func add(_ other: BankOutcome) {
        findings += other.findings
        transferred += other.transferred
        refused += other.refused
        unknown += other.unknown
        kills += other.kills
        stops += other.stops
        killedOpenings += other.killedOpenings
        accounts += other.accounts
    }

    var description: String {
        """
        \(accounts) accounts; \(transferred) transfers acknowledged, \(refused) refused, \(unknown) unknown; \(kills) kills \
        (\(killedOpenings) of these while a bank was opened), \(stops) restarts in order
        """
    }
}
