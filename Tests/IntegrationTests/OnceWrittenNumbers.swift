import Trebuchet

/// Numbers, each of which may be written once: what was done twice, or not at all, shows.
@Trebuchet
distributed actor OnceWrittenNumbers {
    @StreamedState var entries: [Int] = []

    @discardableResult
    distributed func add(_ number: Int) -> Int {
        entries.append(number)
        return entries.count
    }

    /// The same, but that its calls are repeated.
    @Idempotent
    @discardableResult
    distributed func put(_ number: Int) -> Int { add(number) }

    distributed func fill(_ count: Int) { entries = Array(0..<count) }
    distributed func clear() { entries = [] }
    distributed func replace(_ index: Int, with number: Int) { entries[index] = number }
    distributed func count() -> Int { entries.count }
    distributed func all() -> [Int] { entries }
}

extension TrebuchetActorSystem {
    /// The server's own.
    func resolveLedger() throws -> OnceWrittenNumbers {
        try OnceWrittenNumbers.resolve(id: TrebuchetActorID("ledger"), using: self)
    }
}
