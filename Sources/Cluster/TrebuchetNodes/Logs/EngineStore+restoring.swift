internal import Platform
internal import Synchronization
internal import TrebuchetActors
internal import TrebuchetCluster

/// Restores entries that the coordination store loses while the node's lease is valid: the server restarted with an older file, or
/// an older replica was promoted.
extension EngineStore {
    /// The number of logs whose ends are compared at the same time.
    private static let checkedAtOnce = 16
    /// The maximum number of log lines about losses until `endReports`.
    private static let maximumReports = 20

    /// Compares the end of a log with the end known to this node under its lease, and writes lost entries again if this node keeps
    /// all of them.
    ///
    /// - Parameter top: The offset of the newest entry in the coordination store.
    /// - Returns: true if the log was changed; the caller reads it again.
    /// - Throws: `failed`, after calling `didLose`, when this node does not keep all lost entries and an append has proved the loss.
    @discardableResult
    func restore(
        _ partition: ActorLog, from top: UInt64, under lease: SlotLease
    ) async throws(StateStoreError) -> Bool {
        guard let seen = partition.lastKnownEnd(under: lease.fence) else { return false }
        if partition.isRemoved(under: lease.fence) {
            guard top > 0 else { return false }
            // Otherwise another owner writes the log by now, or a replica that is behind was read.
            guard try await remove(partition, at: top, under: lease) else { return true }
            report(
                "the coordination store restored the deleted log of actor '\(partition.name)'; the log is deleted again"
            )
            return true
        }
        guard top < seen.offset else { return false }
        if top == 0, partition.mayBeRemoved(under: lease.fence) {
            partition.didRemove(under: lease.fence)
            return false
        }
        guard let entries = partition.recent(behind: top), try await isKnown(top, of: partition, under: lease) else {
            guard try await isProved(top, of: partition, known: seen, under: lease) else { return true }
            let error = ClusterEngineError.entriesLost(of: partition.log, known: seen, top: top)
            didLose(lease, error)
            throw Self.failure(error, partition)
        }
        try await restoreRows(partition, under: lease)
        for (index, entry) in entries.enumerated() {
            try await append(again: entry, behind: top + UInt64(index), to: partition, under: lease)
        }
        report(
            "the coordination store lost the newest \(entries.count.counted("entry", "entries")) of the log of actor "
                + "'\(partition.name)'; this node wrote them again; set 'appendfsync always' at the server to prevent the loss"
        )
        return true
    }

    /// Proves by an append under the lease that a log ends at `top`, although this node knows a later end. A read proves nothing: a
    /// replica may be behind, and after the end of the lease the next owner may have removed the log.
    ///
    /// - Returns: false if no entry is missing.
    private func isProved(
        _ top: UInt64, of partition: ActorLog, known seen: LogPosition, under lease: SlotLease
    ) async throws(StateStoreError) -> Bool {
        // The append may succeed without a response.
        partition.discardContents()
        let mark = ActorLogEntry.bytes(of: [])
        let outcome = try await performRequest(partition, lease) { () async throws(ClusterEngineError) in
            try await engine.append(LogAppend(mark, expectedHead: seen.offset), to: partition.log, lease: lease)
        }
        switch outcome {
        case .headMismatch(top): return true
        case .accepted(let offset):
            recent.insert(mark, to: partition, at: LogPosition(fence: lease.fence, offset: offset))
            return false
        // A log that ends elsewhere reports that first.
        case .full: return false
        case .fenced: throw Self.leaseEnded(partition.name)
        case .leaseExpired, .headMismatch, .repeated:
            throw StateStoreError(.unavailable, "the log of actor '\(partition.name)' is not at the expected position")
        }
    }

    /// Returns whether the newest entry in the coordination store is the one that this node knows at that offset.
    private func isKnown(
        _ top: UInt64, of partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) -> Bool {
        guard top > 0, let entry = partition.recent(behind: top - 1)?.first else { return true }
        do throws(ClusterEngineError) {
            let before = LogPosition(fence: lease.fence, offset: top - 1)
            let reading = try await engine.readLog(partition.log, after: before, limit: 1)
            // A compacted entry cannot be compared.
            guard reading.start == .resumed, let found = reading.entries.first else { return true }
            return found.payload == entry
        } catch {
            throw Self.failure(error, partition)
        }
    }

    private func append(
        again entry: [UInt8], behind top: UInt64, to partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) {
        let change = LogAppend(entry, expectedHead: top)
        var outcome = try await performRequest(partition, lease) { () async throws(ClusterEngineError) in
            try await engine.append(change, to: partition.log, lease: lease)
        }
        if outcome == .full, let compacted = try? await compactNow(partition, under: lease) {
            partition.didCompact(compacted)
            outcome = try await performRequest(partition, lease) { () async throws(ClusterEngineError) in
                try await engine.append(change, to: partition.log, lease: lease)
            }
        }
        switch outcome {
        case .accepted: break
        case .fenced:
            partition.discardContents()
            throw Self.leaseEnded(partition.name)
        case .full, .leaseExpired, .headMismatch, .repeated:
            partition.discardContents()
            throw StateStoreError(.unavailable, "the log of actor '\(partition.name)' is not restored yet")
        }
    }

    /// Reads a log that this node owns, after restoring lost entries that this node knows.
    func readOwn(
        _ partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) -> (ActorLogContents, top: LogPosition, ActorLogSize) {
        var (contents, top, _, size) = try await read(partition)
        if try await restore(partition, from: top.offset, under: lease) {
            (contents, top, _, size) = try await read(partition)
            guard let seen = partition.lastKnownEnd(under: lease.fence), seen.offset <= top.offset else {
                throw StateStoreError(
                    .unavailable, "the log of actor '\(partition.name)' is not at the expected position")
            }
        }
        return (contents, top, size)
    }

    /// Notes the end of a log that was just read. Entries that are new to this node are its writes without a response: it keeps them
    /// too.
    func recordLogEnd(
        _ top: LogPosition, of partition: ActorLog, under lease: SlotLease
    ) async throws(StateStoreError) {
        if engine.confirmsWrites, top != .start { return partition.didRead(to: nil, under: lease.fence) }
        if let seen = partition.lastKnownEnd(under: lease.fence), seen.offset < top.offset {
            let reading: LogReadResult
            do throws(ClusterEngineError) {
                reading = try await engine.read(partition.log, after: seen)
            } catch {
                throw Self.failure(error, partition)
            }
            if reading.start == .resumed, reading.entries.last?.position == top {
                for entry in reading.entries { recent.insert(entry.payload, to: partition, at: entry.position) }
            }
        }
        partition.didRead(to: top, under: lease.fence)
    }

    /// Removes the log that ends at `top`.
    ///
    /// - Returns: false if it ends elsewhere, or this node does not own it any more.
    @discardableResult
    func remove(_ partition: ActorLog, at top: UInt64, under lease: SlotLease) async throws(StateStoreError) -> Bool {
        // A restored log of an earlier removal keeps its mark.
        if !partition.isRemoved(under: lease.fence) { partition.didRemove(under: lease.fence, isInDoubt: true) }
        let outcome = try await performRequest(partition, lease) { () async throws(ClusterEngineError) in
            try await engine.removeLog(partition.log, at: top, lease: lease)
        }
        switch outcome {
        case .stored:
            partition.didRemove(under: lease.fence)
            return true
        case .fenced, .leaseExpired, .positionMismatch:
            partition.discardContents(all: true)
            return false
        }
    }

    /// Executes a request for a log, reports a loss of its data, and converts errors.
    func performRequest<Answer>(
        _ partition: ActorLog, _ lease: SlotLease, _ body: () async throws(ClusterEngineError) -> Answer
    ) async throws(StateStoreError) -> Answer {
        do throws(ClusterEngineError) {
            return try await body()
        } catch {
            if error.code == .dataLoss { didLose(lease, error) }
            throw Self.failure(error, partition)
        }
    }

    // MARK: After a new connection to the coordination store

    /// Compares the ends of all logs that this node knows with those in the coordination store, and restores lost entries.
    ///
    /// - Parameters:
    ///   - names: The actors of the logs; nil for all logs that this node knows.
    ///   - isSettled: True if slots whose leases ended during an outage have owners again.
    /// - Returns: The names that are left, for which the coordination store did not respond. After some of them the others are not
    ///   tried any more; those come first.
    func checkEnds(of names: [String]? = nil, isSettled: Bool = false) async -> [String] {
        let names = names ?? knownPartitions
        return await withTaskGroup(of: String?.self) { group in
            var (failed, next) = ([String](), names.startIndex)
            while next < names.endIndex, failed.count < Self.checkedAtOnce {
                if next >= Self.checkedAtOnce, let name = await group.next() ?? nil { failed.append(name) }
                let name = names[next]
                next += 1
                group.addTask {
                    do throws(StateStoreError) {
                        try await self.checkEnd(of: name, isSettled)
                        return nil
                    } catch {
                        return error.code == .unavailable ? name : nil
                    }
                }
            }
            for await name in group { if let name { failed.append(name) } }
            return Array(names[next...]) + failed
        }
    }

    private func checkEnd(of name: String, _ isSettled: Bool) async throws(StateStoreError) {
        try await with(name) { partition throws(StateStoreError) in
            let lease = lease(partition.log.slot)
            let seen = lease.flatMap { partition.lastKnownEnd(under: $0.fence) }
            // Before slots have owners again, this node may acquire one under the same fence.
            guard let known = seen ?? (lease != nil || isSettled ? partition.recentlyWrittenEnd : nil) else { return }
            let reading: LogReadResult
            do throws(ClusterEngineError) {
                reading = try await engine.readLog(partition.log, after: known, limit: 1)
            } catch {
                throw Self.failure(error, partition)
            }
            if let lease, seen != nil {
                try await restore(partition, from: reading.head.offset, under: lease)
            } else if reading.hasLost(known) {
                report(
                    "the coordination store lost the newest entries of the log of actor '\(name)', which this node no longer owns; "
                        + "the next owner continues without them")
                if reading.head.fence > known.fence { partition.discardContents(all: true) }
            }
        }
    }

    // MARK: Reports

    /// A struct: a closure that a mutex holds directly is wrapped once more with each access.
    struct Reports {
        var log: (@Sendable (String) -> Void)?
        /// The number of lines since `endReports`.
        var count = 0
    }

    /// Sets the closure that receives each line about a loss of entries.
    func report(to log: @escaping @Sendable (String) -> Void) { reports.withLock { $0.log = log } }

    /// Logs a line, unless `maximumReports` lines were logged.
    func report(_ line: String) {
        let log = reports.withLock { reports in
            reports.count += 1
            return reports.count <= Self.maximumReports ? reports.log : nil
        }
        log?(line)
    }

    /// Logs the number of omitted lines.
    func endReports() {
        let (log, more) = reports.withLock { reports in
            defer { reports.count = 0 }
            return (reports.log, reports.count - Self.maximumReports)
        }
        if more > 0 { log?("the coordination store lost entries of \(more.counted("more log"))") }
    }
}

extension LogReadResult {
    /// Returns whether the log certainly continues without an entry that it had. A log that was compacted since has no loss, and one
    /// whose contents are all of a later fence may have been removed on purpose: then the next owner has begun it again.
    fileprivate func hasLost(_ known: LogPosition) -> Bool {
        switch start {
        case .resumed: false
        case .snapshot(let snapshot):
            snapshot.position.offset < known.offset && snapshot.position.fence <= known.fence
        case .start: (entries.first?.position.fence ?? .max) <= known.fence
        }
    }
}
