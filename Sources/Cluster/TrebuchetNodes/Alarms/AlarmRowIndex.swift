internal import Platform
internal import Synchronization
internal import Trebuchet
internal import TrebuchetActors
internal import TrebuchetCluster

/// The alarm rows of the slots that a node owns: reads them from the coordination store in windows, and writes them there.
final class AlarmRowIndex: AlarmRowSource {
    /// The number of requests to the coordination store at the same time, for reads and for deletions.
    private static let concurrentRequests = 16
    /// The maximum number of rows that wait for their deletion. Others stay, until the slot's next owner finds them.
    private static let maximumDeletions = 65_536
    /// The number of rows that one request deletes.
    private static let deletionBatch = 256
    /// The number of failures after which rows stay.
    private static let deletionAttempts = 8
    private static let backoff = Backoff(first: .milliseconds(200), limit: .seconds(5))

    /// The windows of owned slots, and the rows to be deleted.
    private struct State {
        var windows: [ClusterSlot: AlarmRowWindow] = [:]
        var deletions: [ClusterSlot: [String]] = [:]
        var deletionCount = 0
        /// The number of tasks that delete rows.
        var deleting = 0
        var rowsAppear: (@Sendable () -> Void)?
    }

    private let engine: any ClusterEngine
    private let isOwned: @Sendable (ClusterSlot) -> Bool
    private let state = Mutex(State())

    /// - Parameter isOwned: Returns whether the node owns a slot, even if its lease has to be renewed first.
    init(_ engine: any ClusterEngine, isOwned: @escaping @Sendable (ClusterSlot) -> Bool) {
        (self.engine, self.isOwned) = (engine, isOwned)
    }

    /// The number of rows in memory.
    var count: Int { state.withLock { $0.windows.values.reduce(0) { $0 + $1.rows.count } } }

    // MARK: Reading

    func whenRowsAppear(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.rowsAppear = body } }

    /// Reports that the node has acquired a slot, whose rows an earlier owner may have written.
    func didAcquire(_ slot: ClusterSlot) {
        let notify = state.withLock { state in
            state.windows[slot] = AlarmRowWindow()
            return state.rowsAppear
        }
        notify?()
    }

    func rows(after name: String?, limit: Int, at now: Int64) async throws(StateStoreError) -> AlarmRowPage {
        let position = name ?? ""
        updateSlots()
        var failed: [ClusterSlot: ClusterEngineError] = [:]
        while true {
            let slots = slotsToRead(after: position).filter { failed[$0] == nil }
            guard !slots.isEmpty else { break }
            failed.merge(await read(slots)) { first, _ in first }
        }
        var page = state.withLock { Self.page(of: &$0.windows, after: position, limit: limit, at: now) }
        page.failure = failed.values.first.map { StateStoreError(.unavailable, $0.textForClients) }
        return page
    }

    /// Adds the windows of slots that the node owns, and removes the others.
    private func updateSlots() {
        let owned = Set(ClusterSlot.all.filter(isOwned))
        state.withLock { state in
            state.windows = state.windows.filter { owned.contains($0.key) }
            for slot in owned where state.windows[slot] == nil { state.windows[slot] = AlarmRowWindow() }
        }
    }

    /// Returns the slots whose next row is not in memory.
    private func slotsToRead(after position: String) -> [ClusterSlot] {
        state.withLock { state in
            var slots: [ClusterSlot] = []
            for slot in ClusterSlot.all where state.windows[slot]?.seek(after: position) == .unknown {
                slots.append(slot)
            }
            return slots
        }
    }

    /// Reads a page of each slot. Returns the errors.
    private func read(_ slots: [ClusterSlot]) async -> [ClusterSlot: ClusterEngineError] {
        await withTaskGroup(of: (ClusterSlot, ClusterEngineError?).self) { group in
            var failed: [ClusterSlot: ClusterEngineError] = [:]
            for (index, slot) in slots.enumerated() {
                if index >= Self.concurrentRequests, let (slot, error) = await group.next() { failed[slot] = error }
                group.addTask { (slot, await self.readPage(of: slot)) }
            }
            for await (slot, error) in group { failed[slot] = error }
            return failed
        }
    }

    private func readPage(of slot: ClusterSlot) async -> ClusterEngineError? {
        let end = state.withLock { state in
            state.windows[slot]?.beginRead()
            return state.windows[slot]?.end
        }
        guard let end else { return nil }
        do throws(ClusterEngineError) {
            let page = try await engine.rows(
                of: SlotAlarmRows.table(of: slot), prefix: "", after: end.isEmpty ? nil : end,
                limit: AlarmRowWindow.pageSize)
            let rows = page.rows.compactMap { SlotAlarmRows.row(named: $0.name) }
            state.withLock { _ = $0.windows[slot]?.didRead(rows, next: page.next) }
            return nil
        } catch {
            state.withLock { $0.windows[slot]?.didFailToRead() }
            return error
        }
    }

    /// Returns the first rows behind a position. Windows whose next row could not be read are left out.
    private static func page(
        of windows: inout [ClusterSlot: AlarmRowWindow], after position: String, limit: Int, at now: Int64
    ) -> AlarmRowPage {
        var due: [AlarmRow] = []
        var next: AlarmRow?
        // The last known row of a window behind which due rows may follow. Later rows of other slots wait for these.
        var bound: AlarmRow?
        for slot in ClusterSlot.all {
            guard case .row(let index)? = windows[slot]?.seek(after: position), let window = windows[slot] else {
                continue
            }
            let rows = window.rows[index...]
            let dueRows = rows.prefix { $0.time <= now }
            due += dueRows
            if let other = rows.dropFirst(dueRows.count).first {
                if next.map({ other.name.precedesInBytes($0.name) }) ?? true { next = other }
            } else if !window.isComplete, let last = rows.last {
                if bound.map({ last.name.precedesInBytes($0.name) }) ?? true { bound = last }
            }
        }
        if let bound { due.removeAll { bound.name.precedesInBytes($0.name) } }
        let isCut = due.count > limit
        if isCut {
            // Sorts the times only, which are fewer bytes, and then as many rows as are returned.
            let latest = due.map(\.time).sorted()[limit - 1]
            due.removeAll { $0.time > latest }
        }
        due.sort { $0.name.precedesInBytes($1.name) }
        guard !isCut, bound == nil else { return AlarmRowPage(Array(due.prefix(limit)), isLast: false) }
        return AlarmRowPage(due + (next.map { [$0] } ?? []), isLast: next == nil)
    }

    // MARK: Writing

    /// Writes rows of a slot. Returns after the coordination store has them.
    func insert(_ rows: [AlarmRow], in slot: ClusterSlot) async throws(ClusterEngineError) {
        guard !rows.isEmpty else { return }
        let change = TableChange(rows.map { .init($0.name, .put([])) })
        guard case .changed = try await engine.apply(change, to: SlotAlarmRows.table(of: slot)) else {
            throw ClusterEngineError(.tooLarge, "the alarms of \(slot) exceed ClusterEngineLimits.valuesPerTable")
        }
        state.withLock { state in for row in rows { state.windows[slot]?.insert(row) } }
    }

    /// Returns the known rows of an actor with these times.
    func rows(_ times: [Int64], of actor: String, in slot: ClusterSlot) -> [AlarmRow] {
        guard !times.isEmpty else { return [] }
        return state.withLock { state in times.flatMap { state.windows[slot]?.rows($0, of: actor) ?? [] } }
    }

    /// Deletes rows of a slot, whose alarms are in no log any more. Rows that cannot be deleted stay: they activate their actors once, at
    /// a later owner of the slot.
    func remove(_ rows: [AlarmRow], in slot: ClusterSlot) {
        guard !rows.isEmpty else { return }
        let mustStart = state.withLock { state in
            for row in rows { state.windows[slot]?.remove(row.name) }
            guard state.deletionCount + rows.count <= Self.maximumDeletions else { return false }
            state.deletions[slot, default: []] += rows.map(\.name)
            state.deletionCount += rows.count
            guard state.deleting < Self.concurrentRequests else { return false }
            state.deleting += 1
            return true
        }
        if mustStart { Task { await deleteRows() } }
    }

    private func nextDeletions() -> (slot: ClusterSlot, names: [String])? {
        state.withLock { state in
            guard let (slot, names) = state.deletions.first else {
                state.deleting -= 1
                return nil
            }
            let first = Array(names.prefix(Self.deletionBatch))
            state.deletions[slot] = names.count > first.count ? Array(names.dropFirst(first.count)) : nil
            state.deletionCount -= first.count
            return (slot, first)
        }
    }

    private func deleteRows() async {
        while let (slot, names) = nextDeletions() {
            let change = TableChange(names.map { .init($0, .delete) })
            for attempt in 1...Self.deletionAttempts {
                do throws(ClusterEngineError) {
                    _ = try await engine.apply(change, to: SlotAlarmRows.table(of: slot))
                    break
                } catch {
                    guard error.isTemporary, attempt < Self.deletionAttempts,
                        (try? await Task.sleep(for: Self.backoff.delay(afterFailures: attempt))) != nil
                    else { break }
                }
            }
        }
    }
}
