import Testing
import TrebuchetActors

/// The alarms of one actor: a pure table. Times are milliseconds.
@Suite struct AlarmTableTests {
    private func table(_ entries: AlarmTable.Entry...) -> AlarmTable {
        var table = AlarmTable()
        for entry in entries { table.set(entry) }
        return table
    }

    private func names(_ table: AlarmTable, at now: Int64) -> [String] { table.due(at: now).map(\.alarm.name) }

    @Test("alarms are due in the order of their times, never early")
    func order() {
        let table = table(
            .init(name: "c", due: 30), .init(name: "a", due: 20), .init(name: "b", due: 20), .init(name: "d", due: 10))
        #expect(table.nextTime == 10)
        #expect(names(table, at: 9) == [])
        #expect(names(table, at: 10) == ["d"])
        #expect(names(table, at: 29) == ["d", "a", "b"])
        #expect(names(table, at: 30) == ["d", "a", "b", "c"])
    }

    @Test("a second alarm of a name replaces the first, and a cancelled one is gone")
    func replacement() {
        var table = table(.init(name: "a", due: 10), .init(name: "a", due: 50), .init(name: "b", due: 60))
        #expect(table.count == 2 && table.nextTime == 50)
        #expect(table.cancel("a") && !table.cancel("a"))
        #expect(table.nextTime == 60)
        #expect(table.cancel("b") && table.isEmpty && table.nextTime == nil)
    }

    @Test("a delivery removes its alarm, unless the method has set it again or cancelled it")
    func completion() throws {
        var table = table(.init(name: "a", due: 10), .init(name: "b", due: 10), .init(name: "c", due: 10))
        let due = table.due(at: 10)
        table.set(.init(name: "b", due: 99))
        table.cancel("c")
        for alarm in due { table.complete(alarm, at: 11) }
        #expect(table.entries == [.init(name: "b", due: 99)])
        #expect(table.fail(due[1], at: 11, attempts: 10) == .none)
        #expect(table.fail(due[2], at: 11, attempts: 10) == .none)
        #expect(table.entries == [.init(name: "b", due: 99)])
    }

    @Test(
        "a recurring alarm moves to its first period after the delivery; missed periods are skipped",
        arguments: [(10, 15), (14, 15), (15, 20), (16, 20), (1_009, 1_010), (1_010, 1_015), (3, 15)] as [(Int64, Int64)]
    )
    func recurrence(now: Int64, next: Int64) throws {
        var table = table(.init(name: "a", due: 10, interval: 5))
        let due = try #require(table.due(at: 10).first)
        table.complete(due, at: now)
        #expect(table.entries == [.init(name: "a", due: next, interval: 5)])
        // A delivery ends only once.
        table.complete(due, at: now + 100)
        #expect(table.nextTime == next)
    }

    @Test("a failed alarm is tried again after a doubled delay, and removed after the last attempt")
    func failures() throws {
        var table = table(.init(name: "a", due: 10))
        var (now, delays): (Int64, [Int64]) = (10, [])
        for attempt in 1...4 {
            let due = try #require(table.due(at: now).first)
            #expect(due.alarm.attempt == attempt)
            let consequence = table.fail(due, at: now, attempts: 5)
            guard case .retry(let delay) = consequence else { Issue.record("\(consequence)"); return }
            let time = try #require(table.nextTime)
            #expect(delay == .milliseconds(time - now))
            #expect(names(table, at: time - 1) == [])
            delays.append(time - now)
            now = time
        }
        #expect(delays == [1_000, 2_000, 4_000, 8_000])
        let last = try #require(table.due(at: now).first)
        #expect(table.fail(last, at: now, attempts: 5) == .dropped)
        #expect(table.isEmpty)
    }

    @Test("a recurring alarm goes on with its next period after the last attempt")
    func recurringFailure() throws {
        var table = table(.init(name: "a", due: 10, interval: 60_000))
        let due = try #require(table.due(at: 10).first)
        #expect(table.fail(due, at: 20, attempts: 1) == .dropped)
        let next = try #require(table.due(at: 60_010).first)
        #expect(next.alarm.attempt == 1)
        #expect(table.nextTime == 60_010)
    }

    @Test("a method that succeeds after its time limit has succeeded, and does not run twice at once")
    func lateEnd() throws {
        var table = table(.init(name: "a", due: 10))
        let due = try #require(table.due(at: 10).first)
        var begins = try table.begin(due)
        #expect(begins)
        #expect(table.fail(due, at: 10, attempts: 5) == .retry(.seconds(1)))
        #expect(throws: TrebuchetError.self) { try table.begin(due) }
        let second = try #require(table.due(at: 1_010).first)
        #expect(throws: TrebuchetError.self) { try table.begin(second) }
        #expect(table.fail(second, at: 1_010, attempts: 5) == .retry(.seconds(2)))
        // A method that sets its alarm again and does not end.
        var other = table
        other.set(.init(name: "a", due: 20))
        let again = try #require(other.due(at: 2_000).first)
        #expect(throws: TrebuchetError.self) { try other.begin(again) }
        other.end(due)
        begins = try other.begin(again)
        #expect(begins)
        let isComplete = table.complete(due, at: 1_500)
        #expect(isComplete && table.isEmpty)
        begins = try table.begin(second)
        #expect(!begins)
    }

    @Test("an alarm that was cancelled, set again or attempted since it was due does not begin")
    func lateBegin() throws {
        var table = table(.init(name: "a", due: 10), .init(name: "b", due: 10), .init(name: "c", due: 10))
        let due = table.due(at: 10)
        table.cancel("a")
        table.set(.init(name: "b", due: 99))
        // An attempt that waits for its actor until its time limit.
        #expect(table.fail(due[2], at: 10, attempts: 5) == .retry(.seconds(1)))
        for alarm in due {
            let begins = try table.begin(alarm)
            #expect(!begins, "\(alarm.alarm.name)")
        }
        let next = try #require(table.due(at: 1_010).last)
        #expect(next.alarm.name == "c")
        for _ in 0..<2 {
            let begins = try table.begin(next)
            #expect(begins)
            table.end(next)
        }
    }

    @Test("the stored form has all alarms with their failures, and other bytes are refused")
    func storedForm() throws {
        var table = table(
            .init(name: "a \"quoted\"", due: 10, interval: 5_000, payload: #"{"id":7}"#), .init(name: "b", due: 7))
        _ = table.fail(try #require(table.due(at: 7).first), at: 8, attempts: 5)
        let restored = try AlarmTable(table.bytes)
        #expect(restored.entries == table.entries)
        #expect(restored.due(at: 1_008).map(\.alarm.attempt) == [1, 2])
        #expect(try AlarmTable(AlarmTable().bytes).isEmpty)
        for text in [
            "", "{}", "[]", #"{"alarms":[{"name":"a"}]}"#, #"{"alarms":[{"name":"a","due":-1}]}"#,
            #"{"alarms":[{"name":"a","due":10000000000000000}]}"#, #"{"alarms":[{"name":"a","due":1,"failures":-1}]}"#,
            #"{"alarms":[{"name":"a","due":1,"interval":9223372036854775807}]}"#,
        ] {
            #expect(throws: (any Error).self, "\(text)") { try AlarmTable(Array(text.utf8)) }
        }
    }

    @Test("the names of rows are in the order of their times, and other names are refused")
    func rows() {
        let times: [Int64] = [0, 9, 10, 1_700_000_000_000, AlarmTable.latest]
        let starts = times.map { AlarmNamespace.start(of: $0) }
        #expect(starts == starts.sorted() && Set(starts.map(\.count)) == [16])
        #expect(AlarmNamespace.start(of: -5) == starts[0])
        #expect(AlarmNamespace.start(of: .max) == starts[4])
        let row = AlarmNamespace.parse("0000000000000010/lists/7")
        #expect(row?.time == 10 && row?.actor == "lists/7")
        for name in ["", "0000000000000010", "0000000000000010/", "000000000000001x/a", "-000000000000010/a", "1/a"] {
            #expect(AlarmNamespace.parse(name) == nil, "\(name)")
        }
    }
}
