import Synchronization
import TestSupport
import Trebuchet

/// An actor whose calls change no state: the payment log records their effects.
@Trebuchet
distributed actor CashRegister {
    @Idempotent distributed func pay(_ what: String, _ amount: Int) -> Int {
        PaymentLog.shared.add(what)
        return amount
    }
    /// Returns once the payment with this name is released.
    @Idempotent distributed func hold(_ what: String) async -> String {
        PaymentLog.shared.add(what)
        _ = await eventually { PaymentLog.shared.isFree(what) }
        return what
    }
    /// Fails as if the actor had moved: errors from user code must not trigger a retry.
    @Idempotent distributed func pretend(_ what: String) throws {
        PaymentLog.shared.add(what)
        throw TrebuchetError(.unavailable, "moved", type: "ActorMoved")
    }
    distributed func length(_ text: String) -> Int { text.utf8.count }
    /// Blocks its reactor, as computation does.
    distributed func burn(_ what: String, _ milliseconds: Int) -> Int {
        PaymentLog.shared.add(what)
        let end = ContinuousClock.now + .milliseconds(milliseconds)
        while ContinuousClock.now < end {}
        return milliseconds
    }
}

/// The payments recorded by all nodes of this process.
final class PaymentLog: Sendable {
    static let shared = PaymentLog()
    private let state = Mutex<(counts: [String: Int], free: Set<String>)>(([:], []))

    func add(_ what: String) { state.withLock { $0.counts[what, default: 0] += 1 } }
    func count(_ what: String) -> Int { state.withLock { $0.counts[what] ?? 0 } }
    func release(_ what: String) { state.withLock { _ = $0.free.insert(what) } }
    func isFree(_ what: String) -> Bool { state.withLock { $0.free.contains(what) } }
}
