internal import TrebuchetActors
internal import TrebuchetCluster

/// Compaction: a log's entries are replaced by a snapshot of the contents that they produce.
extension EngineStore {
    /// The size of entries in bytes up to which a log is never compacted.
    private static let minimumEntryBytes = 64 << 10
    private static let entryRatio = 2

    /// Stores a snapshot in place of a log's entries when these outweigh it, in a background task.
    func compact(_ partition: ActorLog, under lease: SlotLease) {
        guard partition.beginCompaction(least: Self.minimumEntryBytes, times: Self.entryRatio) else { return }
        Task.detached(priority: .utility) {
            // A failed attempt is repeated after further entries.
            do {
                partition.endCompaction(try await self.compactNow(partition, under: lease), isTooLarge: false)
            } catch {
                partition.endCompaction(nil, isTooLarge: (error as? ClusterEngineError)?.code == .tooLarge)
            }
        }
    }

    /// - Returns: The size of the new snapshot in bytes; nil when another node owns the log.
    func compactNow(_ partition: ActorLog, under lease: SlotLease) async throws -> Int? {
        let (contents, _, whole, _) = try await read(partition)
        let bytes = contents.compacted
        do throws(ClusterEngineError) {
            let outcome = try await engine.storeSnapshot(
                bytes, at: whole.offset, of: partition.log, lease: lease, keepingLast: 0)
            return outcome == .stored ? bytes.count : nil
        } catch {
            if error.code == .dataLoss { didLose(lease, error) }
            throw error
        }
    }
}
