import Relays
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct StateRelayMemoryTests {
    private final class Box: Sendable {}

    @Test("a replaced value is freed at once")
    func replacedValue() {
        let relay = StateRelay(Box())
        weak let first = relay.currentValue
        #expect(first != nil)
        relay.update(Box())
        #expect(first == nil)
    }

    @Test("a waiting reader does not retain its relay, and ends with it")
    func waitingReader() async {
        var relay: StateRelay<Box>? = StateRelay(Box())
        weak let weakRelay = relay
        weak let value = relay?.currentValue
        let reader = Task { [stream = relay!.stream] in
            var count = 0
            for await _ in stream { count += 1 }
            return count
        }
        #expect(await eventually { weakRelay?.waitingReaderCount == 1 }, "the reader waits")
        relay = nil
        #expect(weakRelay == nil)
        #expect(await reader.value == 1)
        #expect(await eventually { value == nil }, "the value is freed")
    }

    @Test("ten thousand released readers leave nothing in the relay")
    func passingReaders() async {
        let relay = StateRelay(0)
        for _ in 0..<100 {
            let readers = (0..<100).map { _ in
                Task { for await _ in relay.stream {} }
            }
            for reader in readers { reader.cancel() }
            for reader in readers { await reader.value }
        }
        #expect(relay.waitingReaderCount == 0)
    }

    @Test("a value whose deinit uses the relay can be replaced")
    func reentrantDeinit() {
        let relay = StateRelay<DeinitAction?>(nil)
        relay.update(DeinitAction { [weak relay] in _ = relay?.currentValue })
        relay.update(nil)
        #expect(relay.currentValue == nil)
    }
}

/// Runs a closure when it is freed.
final class DeinitAction: Sendable {
    private let onDeinit: @Sendable () -> Void

    init(_ onDeinit: @escaping @Sendable () -> Void) { self.onDeinit = onDeinit }

    deinit { onDeinit() }
}
