import Synchronization
import Testing

@testable import TrebuchetCluster

/// A listener that records the owned slots and checks the order of its calls.
final class SlotRecorder: SlotRebalanceListener {
    private struct State {
        var owned: [ClusterSlot: SlotLease] = [:]
        /// The slots for which `slotWillBeRevoked` has been called.
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

    /// Returns the number of revocations since the last call.
    func takeRevocationCount() -> Int {
        state.withLock { state in
            defer { state.revoked = 0 }
            return state.revoked
        }
    }

    /// From now on, revocations do not complete until `unblockRevocations` is called.
    func blockRevocations() { state.withLock { $0.isStuck = true } }

    func unblockRevocations() {
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
            #expect(before == nil || state.leaving.contains(lease.slot), "\(lease) after \(before!)")
            state.leaving.remove(lease.slot)
        }
    }

    func slotWillBeRevoked(_ lease: SlotLease) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                // The slot may have been lost before this call ran.
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
