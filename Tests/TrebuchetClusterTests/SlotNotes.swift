import Synchronization
import Testing

@testable import TrebuchetCluster

/// A listener that notes what it owns, and complains of what may not follow each other.
final class SlotNotes: SlotRebalanceListener {
    private struct State {
        var owned: [ClusterSlot: SlotLease] = [:]
        /// Those for which `slotWillBeRevoked` has been called.
        var leaving: Set<ClusterSlot> = []
        var revoked = 0
        var lost = 0
        var isStuck = false
        var stuck: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    var owned: Set<SlotLease> {
        state.withLock { state in Set(state.owned.values.filter { !state.leaving.contains($0.slot) }) }
    }

    var lost: Int { state.withLock { $0.lost } }

    /// How many were asked for since this was read last.
    func takeRevoked() -> Int {
        state.withLock { state in
            defer { state.revoked = 0 }
            return state.revoked
        }
    }

    /// From now on it does not stop what lives there, until it is told to.
    func stick() { state.withLock { $0.isStuck = true } }

    func unstick() {
        let stuck = state.withLock { state in
            state.isStuck = false
            defer { state.stuck = [] }
            return state.stuck
        }
        for continuation in stuck { continuation.resume() }
    }

    func slotAssigned(_ lease: SlotLease) {
        state.withLock { state in
            let before = state.owned.updateValue(lease, forKey: lease.slot)
            #expect(before == nil || state.leaving.contains(lease.slot), "\(lease) behind \(before!)")
            state.leaving.remove(lease.slot)
        }
    }

    func slotWillBeRevoked(_ lease: SlotLease) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // Perhaps it was lost before this came to run.
                if state.owned[lease.slot] == lease { state.leaving.insert(lease.slot) }
                state.revoked += 1
                if state.isStuck { state.stuck.append(continuation) }
                return !state.isStuck
            }
            if isOver { continuation.resume() }
        }
    }

    func slotLost(_ lease: SlotLease) {
        state.withLock { state in
            #expect(state.owned[lease.slot] == lease, "\(lease) was not owned")
            state.owned[lease.slot] = nil
            state.leaving.remove(lease.slot)
            state.lost += 1
        }
    }
}
