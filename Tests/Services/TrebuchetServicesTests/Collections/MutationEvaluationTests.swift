import Platform
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite("The evaluation of a mutation in parts") struct MutationEvaluationTests {
    private static let client = "0123456789abcdef"
    private static let large = JSONValue.string(String(repeating: "x", count: 30_000))

    /// Evaluates a mutation with one write in each part, and calls `body` between the parts. The outcome is nil when the table
    /// has changed too often.
    private static func evaluate(
        _ mutation: DocumentMutation, in table: inout DocumentTable, as creator: String? = nil, at now: Int = 0,
        between body: (inout DocumentTable, _ parts: Int) -> Void = { _, _ in }
    ) -> (outcome: MutationOutcome?, parts: Int) {
        var evaluation = MutationEvaluation(mutation, from: ByteText(client), creator: creator, origin: nil)
        var parts = 0
        while true {
            var slice = ScanSlice(steps: 1)
            parts += 1
            let part = table.resume(
                &evaluation, &slice, at: now, isThere: { _ in false }, check: nil,
                may: { _, _ in true })
            switch part {
            case .complete(let outcome): return (outcome, parts)
            case .contended: return (nil, parts)
            case .incomplete: body(&table, parts)
            }
        }
    }

    private static func transaction(_ number: Int, _ commands: [DocumentCommand]) -> DocumentMutation {
        DocumentMutation(number: number, writes: commands.map { DocumentWrite($0) })
    }

    private static func write(_ table: inout DocumentTable) {
        if let batch = table.beginWrite() { _ = table.endWrite(batch) }
    }

    @Test("the table does not change before the last of many writes")
    func parts() {
        var table = DocumentTable(limits: CollectionLimits())
        _ = Self.evaluate(DocumentMutation(number: 1, command: .add("d", ["t": Self.large])), in: &table)
        Self.write(&table)
        let (before, revision) = (table.document("d"), table.revision)
        let updates = (0..<100).map { DocumentCommand.update(id: "d", fields: ["n": .integer($0)]) }
        let (outcome, parts) = Self.evaluate(Self.transaction(2, updates), in: &table) { table, _ in
            #expect(!table.hasUnwritten && table.revision == revision && table.document("d") == before)
        }
        #expect(parts == 100 && outcome == MutationOutcome(number: 2, revision: revision + 100))
        #expect(table.document("d")?.fields["n"] == .integer(99) && table.unwrittenCount == 1)
    }

    @Test("a large document counts as many steps, a small one as one")
    func steps() {
        var parts: [Int] = []
        for text in [Self.large, .string("x")] {
            var table = DocumentTable(limits: CollectionLimits())
            _ = Self.evaluate(DocumentMutation(number: 1, command: .add("d", ["t": text])), in: &table)
            let updates = (0..<64).map { DocumentCommand.update(id: "d", fields: ["n": .integer($0)]) }
            var evaluation = MutationEvaluation(
                Self.transaction(2, updates), from: ByteText(Self.client), creator: nil, origin: nil)
            var count = 0
            while true {
                count += 1
                var slice = ScanSlice(steps: 16)
                let part = table.resume(
                    &evaluation, &slice, at: 0, isThere: { _ in false }, check: nil, may: { _, _ in true })
                if case .complete = part { break }
            }
            parts.append(count)
        }
        #expect(parts == [64, 4])
    }

    @Test("the outcome and the quotas are those of an evaluation in one part", arguments: UInt64(1)...8)
    func model(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var limits = CollectionLimits()
        (limits.documentsPerCollection, limits.collectionBytes, limits.principalQuotaDivisor) = (12, 900, 4)
        var (sliced, whole) = (DocumentTable(limits: limits), DocumentTable(limits: limits))
        for number in 1...60 {
            let writes = (0..<Int.random(in: 1...8, using: &random)).map { _ in
                let id = DocumentID("d\(Int.random(in: 0..<10, using: &random))")
                let value = JSONValue.integer(Int64.random(in: 0..<3, using: &random))
                let command: DocumentCommand =
                    switch Int.random(in: 0..<7, using: &random) {
                    case 0...2: .add(id, ["n": value])
                    case 3: .update(id: id, fields: ["n": value])
                    case 4: .link(id: id, field: "l", target: value)
                    case 5: .create(id: id, fields: ["id": .string(id.text)], expiresIn: .milliseconds(3))
                    default: .delete(id: id)
                    }
                return DocumentWrite(command)
            }
            let mutation = DocumentMutation(number: number, writes: writes)
            let creator = ["ada", "bob"].randomElement(using: &random)
            let now = number
            let outcome = whole.apply(mutation, from: Self.client, creator: creator, at: now) { _, _ in true }
            #expect(Self.evaluate(mutation, in: &sliced, as: creator, at: now).outcome == outcome, "seed \(seed)")
            #expect(sliced.revision == whole.revision && sliced.shares.all == whole.shares.all, "seed \(seed)")
            #expect(sliced.shares.scopeCount == whole.shares.scopeCount, "seed \(seed)")
            let expiries = [sliced.nextExpiry, whole.nextExpiry]
            #expect(expiries[0] == expiries[1])
            for id in (0..<10).map({ DocumentID("d\($0)") }) {
                #expect(sliced.document(id) == whole.document(id), "seed \(seed), \(id.text)")
            }
            let changes = [sliced.beginWrite(), whole.beginWrite()].map { $0?.documents.mapValues(\.revision) }
            #expect(changes[0] == changes[1])
            if Bool.random(using: &random) {
                sliced.discardUnwritten()
                whole.discardUnwritten()
            }
        }
    }

    @Test("batches may begin, end and fail between two parts")
    func batches() {
        for isFailed in [false, true] {
            var table = DocumentTable(limits: CollectionLimits())
            _ = Self.evaluate(DocumentMutation(number: 1, command: .add("a", ["n": .integer(1)])), in: &table)
            let commands = ["a", "b"].map { DocumentCommand.add($0) } + [.delete(id: "a")]
            var batch: DocumentTable.Batch?
            let (outcome, parts) = Self.evaluate(Self.transaction(2, commands.reversed()), in: &table) { table, parts in
                if parts == 1 { batch = table.beginWrite() }
                guard parts == 2, let batch else { return }
                if isFailed { table.discardUnwritten() } else { _ = table.endWrite(batch) }
            }
            #expect(outcome != nil && outcome?.error == nil)
            #expect(parts == (isFailed ? 5 : 3), "it starts again when a document that it has read is discarded")
            #expect(table.document("a")?.fields["n"] == nil && table.document("b") != nil)
            #expect(table.unwrittenCount == 2)
        }
    }

    @Test("it starts again when a document that it has read has expired or was replaced")
    func restarts() {
        let commands: [DocumentCommand] = [
            .update(id: "a", fields: ["n": .integer(2)]), .update(id: "b", fields: ["n": .integer(2)]), .add("c"),
        ]
        func table() -> DocumentTable {
            var table = DocumentTable(limits: CollectionLimits())
            let first = Self.transaction(
                1, [.create(id: "a", fields: ["id": .string("a")], expiresIn: .seconds(1)), .add("b"), .add("x")])
            _ = Self.evaluate(first, in: &table)
            Self.write(&table)
            return table
        }
        var expiring = table()
        let (expired, parts) = Self.evaluate(Self.transaction(2, commands), in: &expiring) { table, parts in
            if parts == 2 { _ = table.expire(at: 2_000, limit: 10) }
        }
        #expect(expired?.error == .notFound(id: "a") && expired?.index == 0 && parts == 3)
        #expect(expiring.document("b")?.fields["n"] == nil && expiring.document("c") == nil)

        var replaced = table()
        let (outcome, replacedParts) = Self.evaluate(Self.transaction(2, commands), in: &replaced) { table, parts in
            guard parts == 2 else { return }
            let replaced = try? table.restore(.todo("b", ["n": .integer(7)]), replaces: true, at: 0)
            #expect(replaced != nil)
        }
        #expect(outcome == MutationOutcome(number: 2, revision: 7) && replacedParts == 5)
        #expect(replaced.document("a")?.revision == 5 && replaced.document("c")?.creationRevision == 7)
    }

    @Test("changes of other documents meanwhile only change its numbers and its time")
    func numbers() {
        var table = DocumentTable(limits: CollectionLimits())
        _ = Self.evaluate(DocumentMutation(number: 1, command: .add("a")), in: &table, at: 10)
        let commands: [DocumentCommand] = [
            .update(id: "a", fields: ["n": .integer(2)]), .add("b"), .update(id: "b", fields: ["n": .integer(3)]),
        ]
        var other: MutationOutcome?
        let (outcome, parts) = Self.evaluate(Self.transaction(2, commands), in: &table, at: 20) { table, parts in
            guard parts == 2 else { return }
            let mutation = DocumentMutation(number: 1, command: .add("x"))
            other = table.apply(mutation, from: "fedcba9876543210", creator: nil, at: 30) { _, _ in true }
        }
        #expect(parts == 3 && other?.revision == 2 && outcome == MutationOutcome(number: 2, revision: 5))
        let (a, b) = (table.document("a"), table.document("b"))
        #expect(
            a?.creationRevision == 1 && a?.createdMilliseconds == 10 && a?.revision == 3 && a?.updatedMilliseconds == 30
        )
        #expect(
            b?.creationRevision == 4 && b?.createdMilliseconds == 30 && b?.revision == 5 && b?.updatedMilliseconds == 30
        )
        #expect(table.revision == 5 && table.time == 30 && a?.fields["n"] == .integer(2))
        let batch = table.beginWrite()
        #expect(batch?.documents.mapValues(\.revision) == ["a": 3, "b": 5, "x": 2])
    }

    @Test("a document that another mutation has created meanwhile keeps the number and time of its creation")
    func createdByOthers() {
        var table = DocumentTable(limits: CollectionLimits())
        let commands: [DocumentCommand] = [
            .add("a"), .update(id: "x", fields: ["n": .integer(1)]), .delete(id: "y"), .add("y"),
        ]
        let (outcome, _) = Self.evaluate(Self.transaction(1, commands), in: &table, at: 10) { table, parts in
            guard parts == 1 else { return }
            let others = Self.transaction(1, [.add("x"), .add("y")])
            let other = table.apply(others, from: "fedcba9876543210", creator: nil, at: 20) { _, _ in true }
            #expect(other.error == nil)
        }
        #expect(outcome == MutationOutcome(number: 1, revision: 6))
        let (x, y) = (table.document("x"), table.document("y"))
        #expect(x?.creationRevision == 1 && x?.createdMilliseconds == 20 && x?.revision == 4)
        #expect(y?.creationRevision == 6 && table.document("a")?.creationRevision == 3)
    }

    @Test("a lifetime begins at the time of the write")
    func lifetimes() {
        var table = DocumentTable(limits: CollectionLimits())
        let commands: [DocumentCommand] = [
            .create(id: "a", fields: ["id": .string("a")], expiresIn: .seconds(1)), .add("b"), .add("c"),
        ]
        _ = Self.evaluate(Self.transaction(1, commands), in: &table, at: 10) { table, _ in
            let mutation = DocumentMutation(number: table.revision + 1, command: .add(DocumentID("x\(table.revision)")))
            _ = table.apply(mutation, from: "fedcba9876543210", creator: nil, at: 500) { _, _ in true }
        }
        let next = table.nextExpiry
        #expect(table.document("a")?.expiryMilliseconds == 1_500 && next == 1_500)
    }

    @Test("a document that expires meanwhile, and is created again, counts once")
    func expiredMeanwhile() {
        var table = DocumentTable(limits: CollectionLimits())
        let first = DocumentCommand.create(id: "e", fields: ["id": .string("e")], expiresIn: .milliseconds(100))
        _ = Self.evaluate(DocumentMutation(number: 1, command: first), in: &table)
        let (outcome, _) = Self.evaluate(Self.transaction(2, [.add("a"), .add("e")]), in: &table) { table, _ in
            let mutation = DocumentMutation(number: 1, command: .add("x"))
            _ = table.apply(mutation, from: "fedcba9876543210", creator: nil, at: 200) { _, _ in true }
        }
        #expect(outcome?.error == nil && table.shares.all.documents == 3)
        #expect(
            table.shares.all.bytes == ["a", "e", "x"].reduce(0) { $0 + (table.document($1)?.encodedByteCount ?? 0) })
    }

    @Test("a document that expires while it is written does not count any more, and is deleted from the store")
    func expiredDuringWrite() {
        var table = DocumentTable(limits: CollectionLimits())
        let first = DocumentCommand.create(id: "e", fields: ["id": .string("e")], expiresIn: .milliseconds(100))
        _ = Self.evaluate(DocumentMutation(number: 1, command: first), in: &table)
        let batch = table.beginWrite()
        _ = Self.evaluate(DocumentMutation(number: 2, command: .add("x")), in: &table, at: 200)
        let changes = batch.map { table.endWrite($0) }
        #expect(changes?.map(\.after) == [nil] && table.document("e") == nil && table.shares.all.documents == 1)
        let next = table.beginWrite()
        #expect(next?.documents.mapValues { $0.document == nil } == ["e": true, "x": false])
    }

    @Test("a mutation that has room in the order of its commands is executed beside others, near the limit")
    func room() {
        var limits = CollectionLimits()
        (limits.collectionBytes, limits.hostQuotaDivisor, limits.principalQuotaDivisor) = (62_000, 1, 1)
        var table = DocumentTable(limits: limits)
        let larger = JSONValue.string(String(repeating: "x", count: 35_000))
        _ = Self.evaluate(DocumentMutation(number: 1, command: .add("b", ["t": larger])), in: &table)
        let commands: [DocumentCommand] = [
            .add("a"), .delete(id: "b"), .update(id: "a", fields: ["t": Self.large]), .add("c", ["t": Self.large]),
        ]
        let (outcome, parts) = Self.evaluate(Self.transaction(2, commands), in: &table) { table, parts in
            let mutation = DocumentMutation(number: parts, command: .add(DocumentID("x\(parts)")))
            _ = table.apply(mutation, from: "fedcba9876543210", creator: nil, at: 0) { _, _ in true }
        }
        #expect(outcome != nil && outcome?.error == nil && parts == 4)
    }

    @Test("quotas that others use meanwhile are not exceeded")
    func quotas() {
        var limits = CollectionLimits()
        limits.documentsPerCollection = 3
        var table = DocumentTable(limits: limits)
        let commands = ["a", "b"].map { DocumentCommand.add($0) }
        let (outcome, _) = Self.evaluate(Self.transaction(1, commands), in: &table) { table, _ in
            for id in ["x", "y"] where table.document(DocumentID(id)) == nil {
                let added = try? table.restore(.todo(DocumentID(id)), replaces: true, at: 0)
                #expect(added != nil)
            }
        }
        #expect(outcome?.error == .tooManyDocuments(limit: 3) && outcome?.index == 1)
        #expect(table.shares.all.documents == 2 && table.document("a") == nil)
    }

    @Test("a mutation that is repeated over another connection meanwhile is executed once")
    func repeated() {
        var table = DocumentTable(limits: CollectionLimits())
        _ = Self.evaluate(DocumentMutation(number: 1, command: .add("a", ["n": .integer(0)])), in: &table)
        let commands: [DocumentCommand] = [
            .increment(id: "a", field: "n", by: .integer(1)), .add("b"),
        ]
        let mutation = Self.transaction(2, commands)
        var first: MutationOutcome?
        let (second, _) = Self.evaluate(mutation, in: &table) { table, _ in
            first = table.apply(mutation, from: Self.client, creator: nil, at: 0) { _, _ in true }
        }
        #expect(first?.error == nil && second == first && table.document("a")?.fields["n"] == .integer(1))
    }

    @Test("it is not executed when its documents change after each part")
    func bounded() {
        var table = DocumentTable(limits: CollectionLimits())
        _ = Self.evaluate(DocumentMutation(number: 1, command: .add("x")), in: &table)
        let commands = (0..<50).map { DocumentCommand.update(id: "x", fields: ["n": .integer($0)]) }
        let (outcome, parts) = Self.evaluate(Self.transaction(2, commands), in: &table) { table, parts in
            let restored = try? table.restore(.todo("x", ["part": .integer(Int64(parts))]), replaces: true, at: 0)
            #expect(restored != nil)
        }
        #expect(outcome == nil && parts == 17)
        #expect(table.document("x")?.fields["n"] == nil)
    }

    @Test("a long transaction is executed although another client changes its document again and again")
    func contended() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("ada"))
            try await ada.client.connect()
            try await bob.client.connect()
            let (collection, other) = (try ada.collection(), try bob.collection())
            let targets = JSONValue.array((0..<10_000).map { .integer($0) })
            _ = try await collection.commit([.add("d", ["l": targets])], from: Self.client)
            let unlinks = (0..<100).map { DocumentCommand.unlink(id: "d", field: "l", target: .integer(Int64($0))) }
            let journal = Journal()
            let writing = Task {
                var number = 0
                while journal.entries.isEmpty {
                    number += 1
                    let update = DocumentCommand.update(id: "d", fields: ["n": .integer(Int64(number))])
                    let outcomes = try await other.commit([update], from: "fedcba9876543210", at: number)
                    #expect(outcomes.map(\.error) == [nil])
                }
                return number
            }
            for number in 2...4 {
                let outcomes = try await collection.commit([Self.transaction(number, unlinks)], from: Self.client)
                #expect(outcomes.map(\.error) == [nil])
            }
            journal.record("over")
            let written = try await writing.value
            let document = try await collection.get(CollectionQuery(limit: 1)).documents.first
            #expect(document?.fields["n"] == .integer(Int64(written)) && written > 0)
        }
    }

    @Test("other calls and commits are executed during a long transaction, which nobody sees in part")
    func turns() async throws {
        try await CollectionTestEnvironment.run { environment in
            let (ada, bob) = (environment.guest("ada"), environment.guest("bob"))
            try await ada.client.connect()
            try await bob.client.connect()
            let (collection, other) = (try ada.collection(), try bob.collection())
            let targets = JSONValue.array((0..<10_000).map { .integer($0) })
            _ = try await collection.commit([.add("d", ["l": targets])], from: Self.client)
            // They read the whole array.
            let unlinks = (0..<100).map { DocumentCommand.unlink(id: "d", field: "l", target: .integer(Int64($0))) }
            let reading = Task {
                var (answers, isOver) = (0, false)
                while !isOver {
                    let found = try await other.get(CollectionQuery(limit: 1)).documents.first?.fields["l"]
                    guard case .array(let linked)? = found else { break }
                    #expect(linked.count == 10_000 || linked.count == 9_900)
                    isOver = linked.count == 9_900
                    answers += 1
                }
                return answers
            }
            let writing = Task {
                for number in 0..<50 {
                    _ = try await other.commit([.add("\(number)")], from: "fedcba9876543210", at: number + 1)
                }
            }
            let outcomes = try await collection.commit([Self.transaction(2, unlinks)], from: Self.client)
            #expect(outcomes.map(\.error) == [nil])
            #expect(
                (outcomes.first?.revision ?? 0) > 1 + unlinks.count,
                "a write of another connection was executed meanwhile")
            let document = try await collection.get(CollectionQuery(limit: 1)).documents.first
            #expect(document?.revision == outcomes.first?.revision)
            #expect(try await reading.value > 2)
            try await writing.value
        }
    }
}
