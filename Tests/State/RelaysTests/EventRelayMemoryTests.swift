import Relays
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct EventRelayMemoryTests {
    private final class Box: Sendable {}

    @Test("a released subscription leaves the relay, with its events")
    func released() {
        let relay = EventRelay<Box>()
        var event: Box? = Box()
        weak let weakEvent = event
        var subscription: EventSubscription<Box>? = relay.subscribe(onOverflow: .fail)
        relay.send(event!)
        event = nil
        #expect(subscription?.bufferedCount == 1)
        #expect(weakEvent != nil)
        subscription = nil
        #expect(weakEvent == nil)
        #expect(relay.subscriberCount == 0)
    }

    @Test("ten thousand released subscriptions leave none behind")
    func passing() {
        let relay = EventRelay<Int>()
        for _ in 0..<10_000 { _ = relay.subscribe(onOverflow: .dropOldest) }
        #expect(relay.subscriberCount == 0)
    }

    @Test("an iterator retains its subscription")
    func iteratorHolds() async throws {
        let relay = EventRelay<Int>()
        var iterator = relay.subscribe(onOverflow: .fail).makeAsyncIterator()
        #expect(relay.subscriberCount == 1)
        relay.send(1)
        #expect(try await iterator.next() == 1)
    }

    @Test("a waiting reader ends when the relay is freed")
    func freedRelay() async throws {
        var relay: EventRelay<Int>? = EventRelay()
        weak let weakRelay = relay
        let subscription = relay!.subscribe(onOverflow: .fail)
        let reader = Task {
            for try await _ in subscription {}
            return true
        }
        #expect(await eventually { subscription.waitingReaderCount == 1 }, "the reader waits")
        relay = nil
        #expect(weakRelay == nil)
        #expect(try await reader.value)
    }

    @Test("a subscription to a finished relay is at its end")
    func afterFinish() async throws {
        let relay = EventRelay<Int>()
        relay.finish()
        let subscription = relay.subscribe(onOverflow: .fail)
        #expect(relay.subscriberCount == 0)
        var iterator = subscription.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
    }

    @Test("an event whose deinit sends to the relay can be dropped")
    func reentrantDeinit() {
        let relay = EventRelay<DeinitAction>()
        let subscription = relay.subscribe(bufferLimit: 1, onOverflow: .dropOldest)
        relay.send(DeinitAction { [weak relay] in relay?.send(DeinitAction {}) })
        relay.send(DeinitAction {})
        #expect(subscription.droppedCount == 2)
        #expect(subscription.bufferedCount == 1)
    }
}
