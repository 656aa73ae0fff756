import Trebuchet

/// Numbers, each of which may be written once: duplicates and losses are visible.
@Trebuchet
distributed actor OnceWrittenNumbers {
    @StreamedState var entries: [Int] = []

    @discardableResult
    distributed func add(_ number: Int) -> Int {
        entries.append(number)
        return entries.count
    }

    /// An `@Idempotent` variant, whose calls are repeated.
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
    /// The server's local actor.
    func resolveLedger() throws -> OnceWrittenNumbers {
        try OnceWrittenNumbers.resolve(id: TrebuchetActorID("ledger"), using: self)
    }
}
