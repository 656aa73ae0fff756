internal import Trebuchet

/// Counts the loaded documents, the recorded outcomes and the open queries of all collections.
typealias CollectionMemoryLedger = MemoryLedger<CollectionConnectionState, CollectionError>

extension CollectionError: MemoryLimitError {}

extension CollectionLimits {
    /// The bytes that each loaded document counts in addition to its JSON.
    static let documentOverhead = 256
    /// The bytes that the recorded outcomes of one client may count.
    private static let clientBytes = 4 << 10
    /// The divisor of the memory that each host has when the rest is used up.
    private static let guaranteedDivisor = 256

    /// - Parameter serverBytes: the limit of the server's buffered bytes. At least a half of it is left for other purposes, because
    ///   the server refuses calls when it is used up.
    func memory(serverBytes: Int) -> MemoryLimits {
        let total = min(storedBytes, serverBytes / 2)
        // The app allows a collection of this size, so any host may be the first to use it.
        let overhead =
            min(documentsPerCollection, total / Self.documentOverhead) * Self.documentOverhead
        let outcomes = min(deduplicatedClients, Self.outcomeBytes / Self.clientBytes) * Self.clientBytes
        let (collection, isLarger) = collectionBytes.addingReportingOverflow(overhead + outcomes)
        let largest = isLarger ? total : min(total, collection)
        return MemoryLimits(
            total: total, perConnection: storedBytesPerConnection, perPrincipal: storedBytesPerPrincipal,
            perHost: max(storedBytesPerHost, largest), guaranteed: total / Self.guaranteedDivisor)
    }
}
