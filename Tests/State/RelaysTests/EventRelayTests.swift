import Relays
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct EventRelayTests {
    @Test("a subscriber gets the events sent since it subscribed, in order, and then the end")
    func order() async throws {
        let relay = EventRelay<Int>()
        relay.send(0)
        let subscription = relay.subscribe(onOverflow: .fail)
        for event in 1...100 { relay.send(event) }
        relay.finish()
        relay.send(101)
        #expect(try await collect(subscription) == Array(1...100))
    }

    @Test("each subscriber gets all events")
    func broadcast() async throws {
        let relay = EventRelay<String>()
        let first = relay.subscribe(onOverflow: .fail)
        relay.send("a")
        let second = relay.subscribe(onOverflow: .fail)
        relay.send("b")
        relay.finish()
        #expect(try await collect(first) == ["a", "b"])
        #expect(try await collect(second) == ["b"])
    }

    @Test("a subscriber that fails by overflow gets the buffered events, then the error, and is removed")
    func failing() async throws {
        let relay = EventRelay<Int>()
        let slow = relay.subscribe(bufferLimit: 2, onOverflow: .fail)
        let patient = relay.subscribe(onOverflow: .fail)
        #expect(relay.subscriberCount == 2)
        for event in 1...3 { relay.send(event) }
        #expect(relay.subscriberCount == 1)
        var seen: [Int] = []
        let error = await #expect(throws: EventOverflow.self) {
            for try await event in slow { seen.append(event) }
        }
        #expect(seen == [1, 2])
        #expect(error?.bufferLimit == 2)
        #expect("\(error!)".contains("more than 2 events behind"))
        relay.finish()
        #expect(try await collect(patient) == [1, 2, 3])
    }

    @Test("dropped events are counted")
    func dropping() async throws {
        let relay = EventRelay<Int>()
        let oldest = relay.subscribe(bufferLimit: 2, onOverflow: .dropOldest)
        let newest = relay.subscribe(bufferLimit: 2, onOverflow: .dropNewest)
        for event in 1...5 { relay.send(event) }
        relay.finish()
        #expect((oldest.droppedCount, newest.droppedCount) == (3, 3))
        #expect(try await collect(oldest) == [4, 5])
        #expect(try await collect(newest) == [1, 2])
    }

    @Test("all subscribers see the events of many senders in one order, each sender's in its own")
    func manySenders() async throws {
        let relay = EventRelay<[Int]>()
        let senders = 8
        let rounds = 500
        let subscriptions = (0..<4).map { _ in
            relay.subscribe(bufferLimit: senders * rounds, onOverflow: .fail)
        }
        let readers = subscriptions.map { subscription in Task { try await collect(subscription) } }
        await withTaskGroup { group in
            for sender in 0..<senders {
                group.addTask {
                    for round in 0..<rounds { relay.send([sender, round]) }
                }
            }
        }
        relay.finish()
        let first = try await readers[0].value
        #expect(first.count == senders * rounds)
        for sender in 0..<senders {
            #expect(first.filter { $0[0] == sender }.map { $0[1] } == Array(0..<rounds))
        }
        for reader in readers.dropFirst() { #expect(try await reader.value == first) }
    }

    @Test("two readers of one subscription share its events between them")
    func sharedSubscription() async throws {
        let relay = EventRelay<Int>()
        let subscription = relay.subscribe(onOverflow: .fail)
        let readers = (0..<2).map { _ in Task { try await collect(subscription) } }
        #expect(await eventually { subscription.waitingReaderCount == 2 }, "both readers wait")
        for event in 0..<100 { relay.send(event) }
        relay.finish()
        let shares = try await [readers[0].value, readers[1].value]
        #expect(shares.joined().sorted() == Array(0..<100))
        #expect(shares.allSatisfy { $0 == $0.sorted() })
    }

    @Test("a cancelled reader ends, and its unread events are available to the next")
    func cancellation() async throws {
        let relay = EventRelay<Int>()
        let subscription = relay.subscribe(onOverflow: .fail)
        let reader = Task { try await collect(subscription) }
        #expect(await eventually { subscription.waitingReaderCount == 1 }, "the reader waits")
        reader.cancel()
        #expect(try await reader.value.isEmpty)
        #expect(subscription.waitingReaderCount == 0)
        relay.send(1)
        relay.finish()
        #expect(try await collect(subscription) == [1])
    }

    @Test("cancellation of readers while events are sent neither loses nor duplicates events")
    func cancellationRaces() async throws {
        let relay = EventRelay<Int>()
        let subscription = relay.subscribe(bufferLimit: 10_000, onOverflow: .fail)
        var seen: [Int] = []
        for round in 0..<500 {
            let reader = Task { try await collect(subscription) }
            if round.isMultiple(of: 2) {
                #expect(await eventually { subscription.waitingReaderCount == 1 }, "the reader waits")
            }
            await withTaskGroup { group in
                group.addTask { for event in 0..<4 { relay.send(round * 4 + event) } }
                group.addTask { reader.cancel() }
            }
            seen += try await reader.value
        }
        relay.finish()
        seen += try await collect(subscription)
        #expect(seen == Array(0..<2_000))
    }

    private func collect<Event>(_ subscription: EventSubscription<Event>) async throws -> [Event] {
        var events: [Event] = []
        for try await event in subscription { events.append(event) }
        return events
    }
}
