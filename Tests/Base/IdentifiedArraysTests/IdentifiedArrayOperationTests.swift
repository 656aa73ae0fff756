import IdentifiedArrays
import Testing

@Suite("Identified arrays as arrays")
struct IdentifiedArrayOperationTests {
    private struct Row: Comparable, Identifiable {
        let id: Int
        var name = ""
        static func < (left: Self, right: Self) -> Bool { left.id < right.id }
    }

    private typealias Rows = IdentifiedArrayOf<Row>

    private func rows(_ ids: [Int]) -> Rows { Rows(uniqueElements: ids.map { Row(id: $0) }) }

    /// True if each element is found at its index.
    private func isWhole(_ rows: Rows) -> Bool {
        rows.ids == rows.map(\.id) && rows.ids.enumerated().allSatisfy { rows.index(id: $1) == $0 }
    }

    @Test("elements are removed at the ends and in the middle")
    func removing() {
        var rows = rows([1, 2, 3, 4, 5, 6, 7, 8, 9])
        #expect(rows.removeLast().id == 9)
        #expect(rows.removeFirst().id == 1)
        rows.removeLast(2)
        rows.removeFirst(1)
        #expect(rows.ids == [3, 4, 5, 6])
        rows.removeSubrange(1..<3)
        #expect(rows.ids == [3, 6])
        #expect(rows.remove(Row(id: 3))?.id == 3)
        #expect(rows.popLast()?.id == 6)
        #expect(rows.popLast() == nil)
        rows = self.rows([1, 2, 3, 4])
        rows.remove(atOffsets: [0, 2])
        #expect(rows.ids == [2, 4])
        #expect(isWhole(rows))
    }

    @Test("elements are set by positions and ids")
    func setting() {
        var rows = rows([1, 2, 3])
        rows[0] = Row(id: 4, name: "a")
        rows[id: 2, default: Row(id: 2)].name = "b"
        rows[id: 9, default: Row(id: 9)].name = "c"
        #expect(rows.map(\.id) == [4, 2, 3, 9])
        #expect(rows.map(\.name) == ["a", "b", "", "c"])
        #expect(rows.update(Row(id: 3, name: "d"), at: 2).name == "")
        #expect(rows.updateOrInsert(Row(id: 4, name: "e"), at: 3).originalMember?.name == "a")
        #expect(rows.updateOrInsert(Row(id: 5), at: 0).index == 0)
        #expect(rows.ids == [5, 4, 2, 3, 9])
        #expect(isWhole(rows))
    }

    @Test("new elements are added, existing ones are not")
    func adding() {
        var rows = rows([1, 2])
        rows.reserveCapacity(10)
        rows.insert(contentsOf: [Row(id: 3), Row(id: 1), Row(id: 4)], at: 1)
        #expect(rows.ids == [1, 3, 4, 2])
        rows += [Row(id: 5), Row(id: 1)]
        #expect((rows + [Row(id: 6)]).ids == [1, 3, 4, 2, 5, 6])
        #expect(isWhole(rows))
    }

    @Test("elements are reordered")
    func reordering() {
        var rows = rows([3, 1, 2])
        rows.sort()
        #expect(rows.ids == [1, 2, 3])
        rows.reverse()
        #expect(rows.ids == [3, 2, 1])
        rows.shuffle()
        #expect(Set(rows.ids) == [1, 2, 3])
        #expect(isWhole(rows))
        #expect(rows.filter { $0.id > 1 }.count == 2)
    }

    @Test("elements are moved as a list does", arguments: 0...5)
    func moving(destination: Int) {
        var rows = rows([0, 1, 2, 3, 4])
        rows.move(fromOffsets: [1, 3], toOffset: destination)
        var expected = Array(0..<destination).filter { $0 != 1 && $0 != 3 }
        expected += [1, 3] + Array(destination..<5).filter { $0 != 1 && $0 != 3 }
        #expect(rows.ids == expected)
        #expect(isWhole(rows))
    }
}
