import Synchronization
import TestSupport
import Trebuchet

/// Is called without changing anything here: what it has done is noted elsewhere.
@Trebuchet
distributed actor CashRegister {
    @Idempotent distributed func pay(_ what: String, _ amount: Int) -> Int {
        PaymentLog.shared.add(what)
        return amount
    }
    /// Until the payment of this name is let go.
    @Idempotent distributed func hold(_ what: String) async -> String {
        PaymentLog.shared.add(what)
        _ = await eventually { PaymentLog.shared.isFree(what) }
        return what
    }
    /// Fails as if the actor had gone elsewhere: what actors throw, and what they are answered by peers, decides nothing.
    @Idempotent distributed func pretend(_ what: String) throws {
        PaymentLog.shared.add(what)
        throw TrebuchetError(.unavailable, "moved", type: "ActorMoved")
    }
    distributed func length(_ text: String) -> Int { text.utf8.count }
    /// Holds its reactor up, as much work does.
    distributed func burn(_ what: String, _ milliseconds: Int) -> Int {
        PaymentLog.shared.add(what)
        let end = ContinuousClock.now + .milliseconds(milliseconds)
        while ContinuousClock.now < end {}
        return milliseconds
    }
}

/// What was paid, by all nodes of this process.
final class PaymentLog: Sendable {
    static let shared = PaymentLog()
    private let state = Mutex<(counts: [String: Int], free: Set<String>)>(([:], []))

    func add(_ what: String) { state.withLock { $0.counts[what, default: 0] += 1 } }
    func count(_ what: String) -> Int { state.withLock { $0.counts[what] ?? 0 } }
    func letGo(_ what: String) { state.withLock { _ = $0.free.insert(what) } }
    func isFree(_ what: String) -> Bool { state.withLock { $0.free.contains(what) } }
}
