internal import Platform
internal import Synchronization

/// Names of actors that are being taken out of reach and may not have written their states: who takes such a name loads
/// behind them, or what they write last would be lost.
package final class Retirements: Sendable {
    private struct Name {
        var count = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let names = Mutex<[ByteText: Name]>([:])

    /// Runs `body`, which takes the actor of this name out of reach, and keeps those who load that name waiting.
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

    /// Returns when no actor of this name is being taken out of reach.
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
    /// What the log is told of a change that is not kept.
    package func loss(_ error: TrebuchetError) -> String {
        "actor '\(name)' was let go of, and its last change is lost: \(error.message)"
    }
}
