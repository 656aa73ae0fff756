internal import TrebuchetCluster

/// What a log makes in place of its entries.
extension EngineStore {
    /// Changes that are never too many, in bytes, beside what they make.
    private static let leastOutweighing = 64 << 10
    private static let outweighing = 2

    /// Has the engine keep what a log makes in place of its entries, when these outweigh it. In nobody's way.
    func fold(_ partition: Partition, under lease: SlotLease) {
        guard partition.beginFolding(least: Self.leastOutweighing, times: Self.outweighing) else { return }
        Task.detached(priority: .utility) {
            // What fails is tried again when there is more.
            do {
                partition.endFolding(try await self.foldNow(partition, under: lease), isTooLarge: false)
            } catch {
                partition.endFolding(nil, isTooLarge: (error as? ClusterEngineError)?.code == .tooLarge)
            }
        }
    }

    /// - Returns: the bytes that the log begins with now; nil when it is another node's.
    func foldNow(_ partition: Partition, under lease: SlotLease) async throws -> Int? {
        let (contents, _, whole, _) = try await read(partition)
        let bytes = contents.folded
        do throws(ClusterEngineError) {
            let outcome = try await engine.store(
                bytes, at: whole.offset, of: partition.log, under: lease, keepingLast: 0)
            return outcome == .stored ? bytes.count : nil
        } catch {
            if error.code == .dataLoss { didLose(lease, error) }
            throw error
        }
    }
}
