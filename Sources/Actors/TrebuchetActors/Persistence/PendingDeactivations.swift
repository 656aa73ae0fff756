internal import Platform
internal import Synchronization

/// The names of actors that are being unexposed and may still have unwritten states. A load of such a name waits, because it
/// would otherwise miss their last write.
package final class PendingDeactivations: Sendable {
    /// The running removals of a name, and the loads that wait for them.
    private struct Name {
        var count = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let names = Mutex<[ByteText: Name]>([:])

    /// Runs `body`, which unexposes the actor with this name. Loads of the name wait meanwhile.
    package func during(_ name: String, _ body: () async -> Void) async {
        let name = ByteText(name)
        names.withLock { $0[name, default: Name()].count += 1 }
        await body()
        let waiting: [CheckedContinuation<Void, Never>] = names.withLock { names in
            names[name]?.count -= 1
            guard names[name]?.count == 0 else { return [] }
            return names.removeValue(forKey: name)?.waiting ?? []
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Returns when no actor with this name is being unexposed.
    func wait(for name: String) async {
        let name = ByteText(name)
        await withCheckedContinuation { continuation in
            let isFree = names.withLock { names in
                guard names[name] != nil else { return true }
                names[name]?.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }
}

extension PersistedStates {
    /// Returns the log line for a change that is lost.
    package func loss(_ error: TrebuchetError) -> String {
        "actor '\(name)' was deactivated, and its last change is lost: \(error.message)"
    }
}
