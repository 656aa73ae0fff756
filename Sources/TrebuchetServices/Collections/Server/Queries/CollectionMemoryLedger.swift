internal import Trebuchet

/// Counts the loaded documents and the open queries of all collections.
typealias CollectionMemoryLedger = MemoryLedger<CollectionConnectionState, CollectionError>

extension CollectionError: MemoryLimitError {}

extension CollectionLimits {
    /// - Parameter serverBytes: the limit of the server's buffered bytes. At least a half of it is left for other purposes, because
    ///   the server refuses calls when it is used up.
    func memory(serverBytes: Int) -> MemoryLimits {
        MemoryLimits(
            total: min(storedBytes, serverBytes / 2), perConnection: storedBytesPerConnection,
            perPrincipal: storedBytesPerPrincipal, perHost: storedBytesPerHost)
    }
}
