import Platform
import Testing
import TrebuchetActors

@testable import Trebuchet

/// Which alarms a server delivers next: a pure core.
@Suite struct AlarmSweepTests {
    private typealias Row = AlarmSweep.Row

    private func row(_ time: Int64, _ actor: String) -> Row { Row(time: time, actor: actor) }

    /// Answers reads from a store until nothing more can be delivered. Returns the deliveries.
    private func deliveries(_ sweep: inout AlarmSweep, _ store: [Row], at now: Int64) -> [Row] {
        var found: [Row] = []
        while true {
            switch sweep.next() {
            case .deliver(let row): found.append(row)
            case .read(let after, let limit):
                let page = store.sorted { $0.name.precedesInBytes($1.name) }
                    .filter { row in after?.precedesInBytes(row.name) ?? true }.prefix(limit)
                sweep.didRead(Array(page), isLast: page.count < limit, at: now)
            case .wait, .retry, .none: return found
            }
        }
    }

    @Test("due rows are delivered in the order of their times, and the first other row is waited for")
    func order() {
        var sweep = AlarmSweep(concurrent: 10)
        let store = [row(30, "c"), row(10, "a"), row(20, "b"), row(21, "d")]
        #expect(deliveries(&sweep, store, at: 20) == [row(10, "a"), row(20, "b")])
        #expect(sweep.next() == .wait(until: 21))
        sweep.didDeliver(row(10, "a"), isFailed: false)
        sweep.didDeliver(row(20, "b"), isFailed: false)
        sweep.resume(at: 20)
        #expect(sweep.next() == .wait(until: 21))
        sweep.resume(at: 30)
        #expect(deliveries(&sweep, [row(21, "d"), row(30, "c")], at: 30) == [row(21, "d"), row(30, "c")])
        #expect(sweep.next() == .wait(until: nil))
    }

    @Test("at most the given number of deliveries is in flight, and pages follow each other")
    func bound() {
        var sweep = AlarmSweep(concurrent: 3)
        var store = (0..<1_000).map { row(Int64($0), "actor-\($0)") }
        var delivered: [Row] = []
        var inFlight: [Row] = []
        while delivered.count < 1_000 {
            let next = deliveries(&sweep, store, at: 5_000)
            inFlight += next
            delivered += next
            #expect(inFlight.count == min(3, 1_000 - delivered.count + inFlight.count))
            guard let first = inFlight.first else { break }
            inFlight.removeFirst()
            store.removeAll { $0 == first }
            sweep.didDeliver(first, isFailed: false)
        }
        #expect(delivered == (0..<1_000).map { row(Int64($0), "actor-\($0)") })
    }

    @Test("a row that is written before the position is found, and an earlier next one shortens the wait")
    func written() {
        var sweep = AlarmSweep(concurrent: 10)
        #expect(deliveries(&sweep, [row(10, "a"), row(90, "z")], at: 50) == [row(10, "a")])
        sweep.didDeliver(row(10, "a"), isFailed: false)
        sweep.didWrite(70)
        #expect(sweep.next() == .wait(until: 70))
        sweep.didWrite(80)
        #expect(sweep.next() == .wait(until: 70))
        sweep.didWrite(5)
        #expect(deliveries(&sweep, [row(5, "b"), row(70, "c"), row(90, "z")], at: 50) == [row(5, "b")])
        #expect(sweep.next() == .wait(until: 70))
        // A row with the time and an actor's name before that of the position.
        sweep.didDeliver(row(5, "b"), isFailed: false)
        sweep.didWrite(5)
        #expect(deliveries(&sweep, [row(5, "a"), row(70, "c")], at: 50) == [row(5, "a")])
    }

    @Test("a row that is written during a read is found although the read lacks it")
    func writtenDuringRead() {
        var sweep = AlarmSweep(concurrent: 10)
        #expect(sweep.next() == .read(after: nil, limit: AlarmSweep.pageSize))
        sweep.didWrite(40)
        #expect(sweep.next() == .none)
        sweep.didRead([row(90, "z")], isLast: true, at: 10)
        #expect(sweep.next() == .wait(until: 40))
        sweep.resume(at: 45)
        guard case .read = sweep.next() else { Issue.record("no read"); return }
        sweep.didWrite(3)
        sweep.didRead([row(40, "a")], isLast: true, at: 45)
        #expect(deliveries(&sweep, [row(3, "b"), row(40, "a")], at: 45) == [row(3, "b"), row(40, "a")] as [Row])
    }

    @Test("an actor has one delivery at a time; its row that is found meanwhile is read again afterwards")
    func oneAtATime() {
        var sweep = AlarmSweep(concurrent: 10)
        #expect(deliveries(&sweep, [row(10, "a")], at: 50) == [row(10, "a")])
        sweep.didWrite(20)
        sweep.resume(at: 50)
        #expect(deliveries(&sweep, [row(20, "a"), row(30, "b")], at: 50) == [row(30, "b")])
        sweep.didDeliver(row(10, "a"), isFailed: false)
        #expect(deliveries(&sweep, [row(20, "a")], at: 50) == [row(20, "a")])
    }

    @Test("a failed row does not stop the others, and all are read again after a growing delay")
    func failures() {
        var sweep = AlarmSweep(concurrent: 10)
        let store = [row(10, "lost"), row(20, "b"), row(90, "z")]
        for attempt in 1...3 {
            #expect(deliveries(&sweep, store, at: 50) == [row(10, "lost"), row(20, "b")])
            #expect(sweep.next() == .wait(until: 90))
            sweep.didDeliver(row(10, "lost"), isFailed: true)
            sweep.didDeliver(row(20, "b"), isFailed: true)
            #expect(sweep.next() == .retry(failures: attempt, until: 90))
            // Later rows are delivered in between.
            sweep.restart()
        }
        #expect(deliveries(&sweep, store, at: 50).count == 2)
        sweep.didDeliver(row(10, "lost"), isFailed: false)
        sweep.didDeliver(row(20, "b"), isFailed: false)
        #expect(sweep.next() == .wait(until: 90))
        sweep.restart()
        #expect(sweep.next() == .wait(until: 90))
        sweep.resume(at: 90)
        #expect(deliveries(&sweep, [row(90, "z")], at: 90) == [row(90, "z")])
        sweep.didDeliver(row(90, "z"), isFailed: true)
        #expect(sweep.next() == .retry(failures: 1, until: nil))
    }

    @Test("a failed row is tried again while the delivery of another actor takes long")
    func failureBesideLongDelivery() {
        var sweep = AlarmSweep(concurrent: 10)
        let store = [row(10, "lost"), row(20, "long")]
        #expect(deliveries(&sweep, store, at: 50) == store)
        sweep.didDeliver(row(10, "lost"), isFailed: true)
        #expect(sweep.next() == .retry(failures: 1, until: nil))
        sweep.restart()
        #expect(deliveries(&sweep, store, at: 50) == [row(10, "lost")])
        sweep.didDeliver(row(10, "lost"), isFailed: false)
        sweep.didDeliver(row(20, "long"), isFailed: false)
        // Its row was passed over, so it is read again, and is gone.
        #expect(deliveries(&sweep, [], at: 50).isEmpty)
        #expect(sweep.next() == .wait(until: nil))
    }

    @Test(
        "actors whose names differ only in their normalization are different actors, and a failure of one is not tried again at once"
    )
    func canonicallyEqualNames() {
        var sweep = AlarmSweep(concurrent: 10)
        let store = [row(10, "e\u{301}"), row(10, "\u{e9}"), row(20, "e\u{301}")]
        let found = deliveries(&sweep, store, at: 50)
        #expect(found.map(\.name).map { Array($0.utf8) } == store.prefix(2).map(\.name).map { Array($0.utf8) })
        sweep.didDeliver(found[0], isFailed: true)
        #expect(sweep.next() == .retry(failures: 1, until: nil))
    }

    @Test("a page of invalid rows is passed over")
    func invalidRows() {
        var sweep = AlarmSweep(concurrent: 10)
        #expect(sweep.next() == .read(after: nil, limit: AlarmSweep.pageSize))
        sweep.didRead([], last: "x", isLast: false, at: 10)
        #expect(sweep.next() == .read(after: "x", limit: AlarmSweep.pageSize))
    }

    @Test("after a failed read all rows are read again")
    func failedRead() {
        var sweep = AlarmSweep(concurrent: 10)
        #expect(sweep.next() == .read(after: nil, limit: AlarmSweep.pageSize))
        sweep.didRead(nil, isLast: false, at: 10)
        #expect(sweep.next() == .retry(failures: 1, until: nil))
        sweep.restart()
        #expect(deliveries(&sweep, [row(10, "a")], at: 10) == [row(10, "a")])
    }
}
