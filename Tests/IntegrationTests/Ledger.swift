import Trebuchet

/// Numbers, each of which may be written once: what was done twice, or not at all, shows.
@Trebuchet
distributed actor Ledger {
    @StreamedState var entries: [Int] = []

    @discardableResult
    distributed func add(_ number: Int) -> Int {
        entries.append(number)
        return entries.count
    }

    distributed func count() -> Int { entries.count }
    distributed func all() -> [Int] { entries }
}

extension TrebuchetActorSystem {
    /// The server's own.
    func resolveLedger() throws -> Ledger { try Ledger.resolve(id: TrebuchetActorID("ledger"), using: self) }
}
