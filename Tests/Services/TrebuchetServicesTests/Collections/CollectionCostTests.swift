import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

/// The cost of a guest's requests is proportional to their size.
@Suite(.timeLimit(.minutes(5))) struct CollectionCostTests {
    private static let object = JSONValue.object(
        JSONObject((0..<5_200).map { (key: "k\(10_000 + $0)", value: .integer(1)) }))

    /// The processor time of this thread.
    private func cost(_ body: () -> Void) -> Duration {
        let begun = ProcessorTime.ofThread
        body()
        return .nanoseconds(ProcessorTime.ofThread - begun)
    }

    @Test("the cost of comparing with a large object depends on the size of the condition")
    func objects() {
        let document = Document.todo("a", ["o": Self.object])
        let values = (2..<66).map { JSONValue.object(["k10000": .integer($0)]) }
        let conditions = [
            QueryCondition.field("o", isIn: values), .any(of: values.map { .field("o", contains: $0) }),
            .field("o", equals: values[0]),
        ]
        let write = WriteCondition.field("o", equals: values[0])
        let cost = cost {
            for _ in 0..<10 {
                for condition in conditions { #expect(!condition.matches(document)) }
                for value in values { #expect(QueryCondition.field("o", doesNotEqual: value).matches(document)) }
                #expect(!write.isSatisfied(by: document))
            }
        }
        #expect(cost < .seconds(2))
    }

    @Test(
        "a change of a document with a large array processes the array once, not once for each condition of each query")
    func arrays() {
        let array = Document.todo("a", ["l": .array((0..<20_000).map { .integer($0) })])
        var lists = MatchLists([array])
        for list in 0..<20 {
            let missing = (0..<30).map { QueryCondition.field("l", contains: .integer(-1 - Int64(list * 30 + $0))) }
            let all = QueryCondition.any(of: missing + [.field("none", doesNotEqual: .null)])
            let made = lists.acquireList(MatchList.Key(CollectionQuery(where: [all]), for: nil)) { _ in true }
            var slice = ScanSlice()
            while !lists.continueScan(made, &slice) {}
            #expect(made.rows.count == 0)
        }
        let cost = cost {
            lists.apply(DocumentChange(id: "a", after: .todo("a", array.fields.with("n", .integer(1))))) { _, _ in }
        }
        #expect(cost < .seconds(1))
    }

    @Test("the cost of comparing with a large array or text does not depend on its numbers and escapes")
    func texts() {
        let elements = [JSONValue.number(1e30)] + (0..<20_000).map { .integer($0) }
        let text = String(repeating: "\n", count: 20_000)
        let document = Document.todo(
            "a", ["w": .number(1e30), "l": .array(elements), "t": .string(text)], created: 1)
        let values = (0..<64).map { JSONValue.array([.number(1e30), .integer(-1 - Int64($0))]) }
        let other = Document.todo("b", ["t": .string(text + "b")], created: 0)
        let cost = cost {
            for _ in 0..<4 { #expect(!QueryCondition.field("l", isIn: values).matches(document)) }
            for number in 0..<300 {
                #expect(QueryCondition.field("t", isLessThan: .string("\n\u{1}\(number)")).matches(document) == false)
                #expect([QueryOrder.ascending("t")].precedes(other, document))
                _ = SortKey(document, in: [.ascending("t")])
            }
        }
        #expect(cost < .seconds(1))
    }

    @Test("the evaluation of one large document yields between its conditions, in a scan and after a change")
    func conditions() {
        let large = JSONObject(["t": .string(String(repeating: "x", count: 60_000)), "n": .integer(31)])
        let document = Document.todo("a", large)
        var lists = MatchLists([document])
        // Grouped, and in all.
        let groups = (0..<15).map {
            [QueryCondition.field("x", doesNotEqual: .integer(0)), .field("n", equals: .integer($0 + 17))]
        }
        let any = QueryCondition(.any(groups))
        let all = [any] + (0..<2).map { .field("n", doesNotEqual: .integer($0)) }
        let list = lists.acquireList(MatchList.Key(CollectionQuery(where: all), for: nil)) { _ in true }
        var turns = 1
        var slice = ScanSlice(steps: 1)
        while !lists.continueScan(list, &slice) { (turns, slice) = (turns + 1, ScanSlice(steps: 1)) }
        #expect(turns >= 31 && list.rows.count == 1 && list.evaluations == 1)
        for (step, number) in [31, 32, 30].enumerated() {
            var fields = document.fields
            fields["n"] = .integer(Int64(number))
            let after = Document(id: "a", fields: fields, revision: step + 1)
            lists.beginApplying(DocumentChange(id: "a", after: after))
            turns = 1
            slice = ScanSlice(steps: 1)
            while !lists.continueApplying(&slice, { _, _, _ in true }) {
                (turns, slice) = (turns + 1, ScanSlice(steps: 1))
            }
            #expect(turns >= 28 && list.rows.count == (number == 32 ? 0 : 1), "\(number)")
            #expect(list.evaluations == step + 2)
        }
    }

    @Test("the indexes of fields include a change in parts, and a list that is added meanwhile has the document")
    func fieldIndexes() {
        var lists = MatchLists([Document.todo("a")])
        func scan(_ conditions: [QueryCondition], prepares: Bool) -> MatchList {
            let key = MatchList.Key(CollectionQuery(where: conditions), for: nil)
            var slice = ScanSlice()
            while prepares, !lists.prepare(key, mayRead: { _ in true }, &slice) {}
            return lists.acquireList(key) { _ in true }
        }
        for field in 0..<8 {
            for value in 0..<2 { _ = scan([.field("f\(field)", equals: .integer(Int64(value)))], prepares: true) }
        }
        #expect(lists.fieldCount == 8)
        let fields = JSONObject((0..<8).map { (key: "f\($0)", value: .integer(1)) })
        lists.beginApplying(DocumentChange(id: "a", after: .todo("a", fields)))
        var added: [MatchList] = []
        while true {
            var slice = ScanSlice(steps: 1)
            if lists.continueApplying(&slice, { _, _, _ in true }) { break }
            guard added.count < 8 else { continue }
            let number = added.count
            added.append(
                scan(
                    [.field("f\(number)", equals: .integer(1)), .field("x", doesNotEqual: .integer(0))], prepares: false
                ))
        }
        #expect(added.count == 8)
        for list in added {
            var slice = ScanSlice()
            while !lists.continueScan(list, &slice) {}
            #expect(list.rows.count == 1)
        }
    }

    @Test("a document that changes during its evaluation is evaluated again")
    func changes() {
        let large = JSONObject(["t": .string(String(repeating: "x", count: 60_000)), "n": .integer(1)])
        var lists = MatchLists([Document.todo("a", large)])
        let conditions = (2..<12).map { QueryCondition.field("n", doesNotEqual: .integer($0)) }
        let list = lists.acquireList(MatchList.Key(CollectionQuery(where: conditions), for: nil)) { _ in true }
        for number in [11, 20] {
            for _ in 0..<5 {
                var slice = ScanSlice(steps: 1)
                #expect(!lists.continueScan(list, &slice))
            }
            let after = Document.todo("a", large.with("n", .integer(Int64(number))))
            lists.apply(DocumentChange(id: "a", after: after)) { _, _ in }
        }
        while true {
            var slice = ScanSlice(steps: 1)
            if lists.continueScan(list, &slice) { break }
        }
        #expect(list.rows.count == 1 && list.evaluations == 3)
    }

    @Test("the mutations of a call are decoded in parts, up to its rate", arguments: [nil, 2])
    func decoding(rate: Int?) throws {
        let mutations = (1...3).map { EncodedJSON(DocumentMutation(number: $0, command: .add("\($0)")).value) }
        var decoder = MutationDecoder(mutations, CollectionLimits())
        var (turns, taken, isDone) = (0, 0, false)
        while !isDone {
            turns += 1
            isDone = try decoder.resume(ScanSlice(steps: 1)) { writes in
                taken += writes
                return rate.map { taken > $0 } ?? false ? 1_000 : nil
            }
        }
        #expect(turns == 3 && taken == 3 && decoder.decoded.count == rate ?? 3)
    }

    @Test("the mutations of a call that is decoded in several turns are executed in order")
    func decodedCommits() async throws {
        try await CollectionTestEnvironment.run(reactors: 1) { world in
            let (ada, bob) = (world.guest("ada"), world.guest("bob"))
            try await ada.client.connect()
            try await bob.client.connect()
            let (collection, other) = (try ada.collection(), try bob.collection())
            _ = try await other.commit([.add("0")], from: "fedcba9876543210")
            let fields = JSONObject((0..<500).map { (key: "\n\($0)", value: .integer(1)) })
            let commands = (0..<32).map { DocumentCommand.add(DocumentID("a\($0)"), fields) }
            let writing = Task {
                for number in 0..<60 {
                    _ = try await other.commit([.add("b\(number)")], from: "fedcba9876543210", at: number + 2)
                }
            }
            for round in 0..<3 {
                let outcomes = try await collection.commit(
                    round == 0 ? commands : commands.map { .delete(id: $0.id) },
                    from: "0123456789abcde\(round)")
                #expect(round == 2 || outcomes.allSatisfy { $0.error == nil })
                let revisions = outcomes.map(\.revision)
                #expect(round == 2 || zip(revisions, revisions.dropFirst()).allSatisfy { $0 < $1 }, "\(revisions)")
            }
            try await writing.value
        }
    }

    @Test("a scan of large documents yields earlier")
    func slices() {
        let documents = (0..<8).map { Document.todo("\($0)", ["t": .string(String(repeating: "x", count: 60_000))]) }
        var lists = MatchLists(documents)
        let list = lists.acquireList(MatchList.Key(.all, for: nil)) { _ in true }
        var slice = ScanSlice(steps: 16)
        #expect(!lists.continueScan(list, &slice))
        #expect(list.rows.count == 2)
    }

    @Test("other calls and commits are executed during a long commit, and none within one of its mutations")
    func turns() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            try await ada.client.connect()
            try await bob.client.connect()
            let (collection, other) = (try ada.collection(), try bob.collection())
            _ = try await collection.commit([.add("d", ["o": Self.object])], from: "0123456789abcdef")
            let mutations = (0..<9).map { number in
                DocumentMutation(
                    number: number + 2,
                    writes: (0..<100).map {
                        DocumentWrite(.update(id: "d", fields: ["n": .integer(Int64(number * 100 + $0))]))
                    })
            }
            // On a busy machine the two would otherwise begin after the commit.
            let journal = Journal()
            let reading = Task {
                var (answers, isOver) = (0, false)
                while !isOver {
                    isOver =
                        try await other.get(CollectionQuery(limit: 1)).documents.first?.fields["n"] == .integer(899)
                    answers += 1
                    if answers == 1 { journal.record("read") }
                }
                return answers
            }
            let writing = Task {
                for number in 0..<100 {
                    _ = try await other.commit([.add("\(number)")], from: "fedcba9876543210", at: number + 1)
                    if number == 0 { journal.record("written") }
                }
            }
            await journal.wait(for: "read")
            await journal.wait(for: "written")
            let revisions = try await collection.commit(mutations, from: "0123456789abcdef").map(\.revision)
            #expect(zip(revisions, revisions.dropFirst()).allSatisfy { $1 - $0 >= 100 }, "\(revisions)")
            #expect(revisions[8] - revisions[0] > 800, "a commit of another connection was executed meanwhile")
            #expect(try await reading.value > 2)
            try await writing.value
        }
    }
}
