import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite struct EventHistoryTests {
    private func history(_ count: Int, maximum: Int = 4) -> EventHistory {
        var history = EventHistory(maximumEvents: maximum, maximumBytes: 100)
        for number in 0..<count { append(&history, .integer(Int64(number % 10))) }
        return history
    }

    private func append(_ history: inout EventHistory, _ payload: JSONValue) {
        _ = history.append(topic: "t", peer: "p", payload: EncodedJSON(payload))
    }

    @Test("a room keeps the latest events, limited by number and by bytes, and always the last one")
    func bounds() {
        #expect(history(6).events.map(\.number) == [3, 4, 5, 6])
        var history = history(2)
        append(&history, .string(String(repeating: "x", count: 97)))
        #expect(history.events.map(\.number) == [2, 3])
        append(&history, .string(String(repeating: "x", count: 1_000)))
        #expect(history.events.map(\.number) == [4])
        append(&history, .null)
        #expect(history.events.map(\.number) == [5])
    }

    private func numbers(_ progress: (events: [RoomEvent], missed: Int)) -> [Int] { progress.events.map(\.number) }

    @Test("a reader starts with the next event, gets each event once, and learns how many it has missed")
    func cursor() {
        var cursor = EventCursor()
        cursor.joined(at: EventPosition(epoch: "e", last: 2))
        #expect(numbers(cursor.advance(over: history(2).events)) == [])
        #expect(numbers(cursor.advance(over: history(3).events)) == [3])
        #expect(numbers(cursor.advance(over: history(3).events)) == [])
        cursor.joined(at: EventPosition(epoch: "e", last: 100))
        let progress = cursor.advance(over: history(9).events)
        #expect(numbers(progress) == [6, 7, 8, 9])
        #expect(progress.missed == 2)
    }

    @Test("a reader that is added long after the join starts with the existing events")
    func late() {
        var cursor = EventCursor()
        #expect(numbers(cursor.advance(over: history(3).events)) == [])
        cursor.reset(after: 3, in: "e")
        #expect(numbers(cursor.advance(over: history(4).events)) == [4])
        cursor.joined(at: EventPosition(epoch: "e", last: 6))
        #expect(numbers(cursor.advance(over: history(6).events)) == [5, 6])
    }

    @Test("after a move a reader gets the kept events once, and those that replaced lost ones")
    func moved() {
        var before = history(5, maximum: 10)
        let first = before.position
        append(&before, .null)
        // The coordination store had lost the sixth event, and the room continues from the fifth.
        var after = EventHistory(
            maximumEvents: 10, maximumBytes: 100, after: first, events: Array(before.events.prefix(5)))
        #expect(after.epoch != before.epoch && after.last == 5)
        var (all, some, none) = (EventCursor(), EventCursor(), EventCursor())
        all.joined(at: before.position)
        some.joined(at: EventPosition(epoch: first.epoch, last: 3))
        none.joined(at: EventPosition(epoch: "another", last: 9))
        append(&after, .null)
        for isFirst in [true, false] {
            let position = after.position
            let haveEnded = [all.joined(at: position), some.joined(at: position), none.joined(at: position)]
            #expect(haveEnded == [false, false, isFirst])
        }
        #expect(numbers(all.advance(over: after.events)) == [6])
        #expect(numbers(some.advance(over: after.events)) == [4, 5, 6])
        #expect(numbers(none.advance(over: after.events)) == [1, 2, 3, 4, 5, 6])
        for _ in 0..<20 { after = EventHistory(maximumEvents: 1, maximumBytes: 1, after: after.position) }
        #expect(after.position.earlier?.count == EventPosition.maximumEarlierIncarnations)
    }

    @Test("a room restored to an earlier incarnation shows no event twice")
    func restored() {
        let first = history(5, maximum: 10)
        var moved = EventHistory(maximumEvents: 10, maximumBytes: 100, after: first.position, events: first.events)
        append(&moved, .null)
        var cursor = EventCursor()
        cursor.joined(at: first.position)
        cursor.joined(at: moved.position)
        #expect(numbers(cursor.advance(over: moved.events)) == [6])
        // The backup is of the first incarnation, and has four of its events.
        var restored = EventHistory(
            maximumEvents: 10, maximumBytes: 100, after: EventPosition(epoch: first.epoch, last: 4),
            events: Array(first.events.prefix(4)))
        append(&restored, .null)
        for _ in 0..<2 { cursor.joined(at: restored.position) }
        #expect(numbers(cursor.advance(over: restored.events)) == [5])
    }

    @Test("impossible event numbers do not terminate a client", arguments: [Int.min, -1, 0, .max - 1, .max])
    func strangeNumbers(number: Int) {
        for last in [Int.min, -1, 0, 1, .max] {
            var cursor = EventCursor()
            cursor.joined(at: EventPosition(epoch: "e", last: last))
            let event = RoomEvent(number: number, topic: "t", peer: "p", payload: EncodedJSON(.null))
            #expect(cursor.continues(with: event) || number > 0)
            let progress = cursor.advance(over: [event])
            #expect(progress.missed >= 0)
            #expect(progress.events.isEmpty || cursor.last == number)
        }
    }

    @Test("a client keeps the last eight earlier epochs named by a server, without nested ones")
    func namedEpochs() {
        let deep = [EventPosition(epoch: "d", last: 1)]
        let many = (0..<10_000).map { EventPosition(epoch: "\($0)", last: 5, earlier: deep) }
        let position = EventPosition(epoch: "e", last: 5, earlier: many)
        #expect(position.bounded.earlier == many.suffix(8).map { EventPosition(epoch: $0.epoch, last: 5) })
        var (all, few) = (EventCursor(), EventCursor())
        all.joined(at: position)
        few.joined(at: position.bounded)
        #expect(all == few)
        var plan = RoomPlan()
        plan.joined(RoomTicket(membershipID: "s", token: "t", events: position), showing: nil)
        #expect(plan.ticket?.events == position.bounded)
    }

    @Test("a new room counts from the beginning: all of its events are new")
    func epoch() {
        var cursor = EventCursor()
        cursor.joined(at: EventPosition(epoch: "e", last: 5))
        cursor.joined(at: EventPosition(epoch: "f", last: 1))
        let progress = cursor.advance(over: history(2).events)
        #expect(numbers(progress) == [1, 2])
        #expect(progress.missed == 0)
    }

    @Test(
        "the kept bytes have an exact limit; at least one event is kept",
        arguments: [(48, 3), (49, 2)])
    func bytes(size: Int, retained: Int) {
        var history = EventHistory(maximumEvents: 10, maximumBytes: 100)
        append(&history, .null)
        append(&history, .string(String(repeating: "x", count: size - 2)))
        append(&history, .string(String(repeating: "x", count: 46)))
        #expect(history.events.count == retained)
        #expect(history.last == 3 && history.position == EventPosition(epoch: history.epoch, last: 3))
        var none = EventHistory(maximumEvents: 0, maximumBytes: 0)
        append(&none, .null)
        append(&none, .null)
        #expect(none.events.map(\.number) == [2])
    }

    @Test("the number of events that an event drops is known before", arguments: [1, 30, 99, 100, 101, 500])
    func dropped(bytes: Int) {
        var history = EventHistory(maximumEvents: 4, maximumBytes: 100)
        let payload = EncodedJSON(.string(String(repeating: "x", count: max(0, bytes - 2))))
        for _ in 0..<10 {
            let count = history.events.count
            let dropped = history.droppedCount(appending: payload.byteCount)
            _ = history.append(topic: "t", peer: "p", payload: payload)
            #expect(history.events.count == count + 1 - dropped)
        }
    }
}
