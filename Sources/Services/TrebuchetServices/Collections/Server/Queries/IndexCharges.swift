/// The counted memory of the indexes of fields of one collection.
///
/// It is used in its collection's isolation only.
struct IndexCharges {
    typealias Charge = CollectionMemoryLedger.Charge

    /// Smaller changes of the memory of an index are not counted.
    private static let precision = 64 << 10

    private let ledger: CollectionMemoryLedger
    private var charges: [FieldIndex.Key: Charge] = [:]

    init(_ ledger: CollectionMemoryLedger) { self.ledger = ledger }

    /// Counts the memory of an index; returns false when a limit refuses it.
    ///
    /// - Parameter slots: the number of slots of the collection.
    mutating func count(
        _ index: FieldIndex.Key, slots: Int, for holder: QuotaHolder, _ client: CollectionConnectionState?
    ) -> Bool {
        let charge = Charge(bytes: FieldIndex.byteCount(slots), holder: holder, client: client)
        let before = charges[index].map { [$0] } ?? []
        guard (try? ledger.replace(before, with: charge)) != nil else { return false }
        charges[index] = charge
        return true
    }

    /// Counts indexes that have grown. Returns those that a limit refuses; the caller removes and releases them.
    mutating func recount(slots: Int) -> [FieldIndex.Key] {
        let bytes = FieldIndex.byteCount(slots)
        var refused: [FieldIndex.Key] = []
        for (index, charge) in charges where bytes - charge.bytes >= Self.precision {
            if !count(index, slots: slots, for: charge.holder, charge.client) { refused.append(index) }
        }
        return refused
    }

    /// Releases the memory of indexes that are not there any more.
    mutating func releaseRemoved(_ isThere: (FieldIndex.Key) -> Bool) {
        for (index, charge) in charges where !isThere(index) {
            ledger.release([charge])
            charges[index] = nil
        }
    }
}
