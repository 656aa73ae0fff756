import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct RowListTests {
    private static func row(_ number: Int) -> DocumentRow {
        DocumentRow(.todo(DocumentID("\(number)"), created: number))
    }

    @Test("rows have the order of an array, whatever is inserted and removed", arguments: UInt64(1)...4)
    func model(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var list = RowList()
        var model: [Int] = []
        func position(_ number: Int) -> RowList.Position { list.position { $0.document.creationRevision < number } }
        // Growing, shrinking to a few, and growing again.
        for (steps, growth) in [(4_000, 9), (5_000, 1), (2_000, 7)] {
            for _ in 0..<steps {
                if model.isEmpty || Int.random(in: 0..<10, using: &random) < growth {
                    let number = Int.random(in: 0..<1_000_000, using: &random)
                    let at = model.firstIndex { $0 >= number } ?? model.count
                    guard at == model.count || model[at] != number else { continue }
                    #expect(list.index(of: position(number)) == at)
                    list.insert(Self.row(number), at: position(number))
                    model.insert(number, at: at)
                } else {
                    let at = Int.random(in: model.indices, using: &random)
                    #expect(list[at].document.creationRevision == model[at])
                    #expect(list.row(at: position(model[at]))?.document == list[at].document)
                    list.remove(at: position(model[at]))
                    model.remove(at: at)
                }
            }
            #expect(list.rows(from: 0).map(\.document.creationRevision) == model && list.count == model.count)
            let from = model.count / 3
            #expect(list.rows(from: from).map(\.document.creationRevision) == Array(model[from...]))
            #expect(Array(list.rows(from: model.count)).isEmpty)
            #expect(list.pieceCounts.allSatisfy { $0 > 0 && $0 <= RowList.maximumPieceCount })
            #expect(list.pieceCounts.count <= 2 + model.count / (RowList.maximumPieceCount / 8))
        }
    }

    @Test("rows appended in order leave pieces that are almost full")
    func appended() {
        var list = RowList()
        for number in 0..<5_000 {
            list.insert(Self.row(number), at: list.position { $0.document.creationRevision < number })
        }
        #expect(list.pieceCounts.count <= 11)
    }
}
