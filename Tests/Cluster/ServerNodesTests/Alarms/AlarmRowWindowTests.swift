import Platform
import Testing
import TrebuchetActors
import TrebuchetCluster

@testable import Trebuchet
@testable import TrebuchetNodes

/// The earliest rows of one slot in memory: a pure core.
@Suite struct AlarmRowWindowTests {
    private func row(_ time: Int64, _ actor: String = "a", _ offset: UInt64 = 1) -> AlarmRow {
        SlotAlarmRows.row(time, actor, at: LogPosition(fence: 1, offset: offset))
    }

    @Test("the name of a row has its time, its position in the log and its actor, and names are in the order of times")
    func names() throws {
        let actor = "lots/é/\u{0}/7"
        let row = SlotAlarmRows.row(1_234, actor, at: LogPosition(fence: .max, offset: 17))
        #expect(row.name == "0000000000001234/ffffffffffffffff0000000000000011/\(actor)")
        #expect(SlotAlarmRows.row(named: row.name) == row)
        for name in ["", "x", "0000000000001234/a", row.name.replacing("/", with: "-")] {
            #expect(SlotAlarmRows.row(named: name) == nil)
        }
        let position = LogPosition(fence: 3, offset: 4)
        #expect(SlotAlarmRows.position(SlotAlarmRows.bytes(of: position)) == position)
        #expect(SlotAlarmRows.position([1, 2]) == nil)
        #expect(self.row(9).name.precedesInBytes(self.row(10).name))
        #expect(ClusterSlot.all.allSatisfy { SlotAlarmRows.table(of: $0).slot == $0 })
        #expect(Set(SlotAlarmRows.tables).count == ClusterSlot.count)
    }

    @Test("a write inserts the row of the next time, removes the others, and leaves other writes as they are")
    func change() throws {
        let position = LogPosition(fence: 2, offset: 9)
        let other = StateWrite.put([1], StateKey("states", "a.x", partition: "a"))
        #expect(AlarmRowChange([other], of: "a", in: [:], at: position) == nil)
        let known = [Int64(5): LogPosition(fence: 1, offset: 3), 7: LogPosition(fence: 1, offset: 4)]
        let change = try #require(
            AlarmRowChange(
                [
                    .delete(AlarmNamespace.row(5, "a")), .delete(AlarmNamespace.row(6, "a")), other,
                    .put([], AlarmNamespace.row(7, "a")), .put([], AlarmNamespace.row(8, "a")),
                ], of: "a", in: known, at: position))
        #expect(change.inserted == [SlotAlarmRows.row(8, "a", at: position)])
        #expect(change.removed == [SlotAlarmRows.row(5, "a", at: LogPosition(fence: 1, offset: 3))])
        #expect(change.removedTimes == [5, 6])
        #expect(change.rows == [7: LogPosition(fence: 1, offset: 4), 8: position])
        #expect(
            change.writes == [
                .delete(AlarmNamespace.row(5, "a")), other,
                .put(SlotAlarmRows.bytes(of: position), AlarmNamespace.row(8, "a")),
            ])
    }

    /// Reads pages of a table into a window until the next row is known.
    private func next(_ window: inout AlarmRowWindow, _ table: [AlarmRow], after position: String) -> AlarmRow? {
        for _ in 0..<1_000 {
            switch window.seek(after: position) {
            case .row(let index): return window.rows[index]
            case .none: return nil
            case .unknown:
                window.beginRead()
                let rest = table.filter { window.end.precedesInBytes($0.name) }
                let page = Array(rest.prefix(AlarmRowWindow.pageSize))
                window.didRead(page, next: rest.count > page.count ? page.last?.name : nil)
            }
        }
        Issue.record("the next row stays unknown")
        return nil
    }

    @Test("all rows are found in their order, however many there are, and few of them are in memory")
    func pages() {
        let table = (0..<1_000).map { row(Int64($0)) }
        var window = AlarmRowWindow()
        var position = ""
        for expected in table {
            let found = next(&window, table, after: position)
            #expect(found == expected)
            #expect(window.rows.count <= AlarmRowWindow.maximumRows)
            position = found?.name ?? "~"
        }
        #expect(next(&window, table, after: position) == nil)
        // From the beginning, as after a failure.
        #expect(next(&window, table, after: "") == table.first)
        #expect(next(&window, table, after: table[700].name) == table[701])
    }

    @Test("a change during a read is not lost")
    func duringRead() {
        var window = AlarmRowWindow()
        #expect(window.seek(after: "") == .unknown)
        window.beginRead()
        window.insert(row(5))
        window.insert(row(6))
        window.remove(row(1).name)
        window.remove(row(6).name)
        window.didRead([row(1), row(2), row(6)], next: nil)
        #expect(window.rows == [row(2), row(5)])
        // A read of an earlier position has no effect.
        window.beginRead()
        _ = window.seek(after: "")
        #expect(window.rows == [row(2), row(5)])
    }

    @Test(
        "any sequence of writes, reads and positions gives the rows of the table", arguments: 0..<200 as Range<UInt64>)
    func random(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var table: [AlarmRow] = []
        var window = AlarmRowWindow()
        /// The page that is being read, with its next position.
        var reading: (page: [AlarmRow], next: String?)?
        var number: UInt64 = 0
        for step in 0..<400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                number += 1
                let row = row(Int64.random(in: 0..<500, using: &random), "a", number)
                table.append(row)
                table.sort { $0.name.precedesInBytes($1.name) }
                window.insert(row)
            case 4, 5:
                guard let row = table.randomElement(using: &random) else { continue }
                table.removeAll { $0 == row }
                window.remove(row.name)
            case 6:
                let from = table.randomElement(using: &random)?.name ?? ""
                guard reading == nil, window.seek(after: from) == .unknown else { continue }
                window.beginRead()
                let rest = table.filter { window.end.precedesInBytes($0.name) }
                let page = Array(rest.prefix(AlarmRowWindow.pageSize))
                reading = (page, rest.count > page.count ? page.last?.name : nil)
            case 7:
                guard let read = reading else { continue }
                reading = nil
                window.didRead(read.page, next: read.next)
            default:
                // One read at a time.
                if let read = reading { window.didRead(read.page, next: read.next) }
                reading = nil
                let position = table.randomElement(using: &random)?.name ?? ""
                let from = Bool.random(using: &random) ? position : ""
                let expected = table.first { from.precedesInBytes($0.name) }
                #expect(next(&window, table, after: from) == expected, "seed \(seed), step \(step)")
            }
            #expect(window.rows.count <= AlarmRowWindow.maximumRows)
        }
    }
}
