import Platform
import TestSupport
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite("Indexes of fields", .timeLimit(.minutes(5))) struct FieldIndexTests {
    @Test("equal values have one hash, whatever the texts of their numbers are", arguments: UInt64(1)...10)
    func hashes(seed: UInt64) {
        var random = RandomSource(seed: seed)
        func value(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
            case 0: return .null
            case 1: return .bool(Bool.random(using: &random))
            case 2: return .integer(Int64.random(in: -2...2, using: &random))
            case 3: return .number(Double(Int.random(in: -4...4, using: &random)) / 2)
            case 4: return .number([1e16, 1e30, -1e18, 0.1].randomElement(using: &random) ?? 0)
            case 5: return .string(["", "a", "\n", "é"].randomElement(using: &random) ?? "")
            case 6: return .array((0..<Int.random(in: 0..<3, using: &random)).map { _ in value(depth - 1) })
            default:
                let names = ["a", "b"].prefix(Int.random(in: 0..<3, using: &random))
                return .object(JSONObject(names.map { (key: $0, value: value(depth - 1)) }))
            }
        }
        let values = (0..<150).map { _ in value(2) } + [.integer(10_000_000_000_000_000), .array([.number(3)])]
        for one in values {
            for other in values where JSONOrder.areEqual(one, other) {
                #expect(ValueHash.of(one) == ValueHash.of(other), "\(one), \(other)")
            }
        }
        let distinct = (0..<1_000).map { ValueHash.of(.array([.integer($0), .string("a")])) }
        #expect(Set(distinct).count == 1_000)
        #expect(ValueHash.of(.null) == ValueHash.of(nil as UnsafeRawBufferPointer?))
    }

    @Test("an index follows changes, and documents with one hash are compared")
    func changes() {
        let start = String(repeating: "x", count: 600)
        let values: [JSONValue] = [.string(start + "a"), .string(start + "b"), .integer(3), .number(3), .null]
        #expect(ValueHash.of(values[0]) == ValueHash.of(values[1]))
        var random = RandomSource(seed: 7)
        var lists = MatchLists([])
        func list(_ value: JSONValue, _ other: Int) -> MatchList {
            let conditions: [QueryCondition] = [
                .field("f", equals: value), .field("n", doesNotEqual: .integer(Int64(other))),
            ]
            let key = MatchList.Key(CollectionQuery(where: conditions), for: nil)
            var slice = ScanSlice.unlimited
            #expect(lists.prepare(key, mayRead: { _ in true }, &slice))
            let list = lists.acquireList(key) { _ in true }
            #expect(lists.continueScan(list, &slice))
            return list
        }
        _ = list(.integer(9), 9)
        var model: [Int: JSONValue] = [:]
        for step in 0..<400 {
            let (id, value) = (Int.random(in: 0..<30, using: &random), values.randomElement(using: &random))
            model[id] = Bool.random(using: &random) ? value : nil
            let document = model[id].map { Document.todo(DocumentID("\(id)"), ["f": $0], created: step) }
            lists.apply(DocumentChange(id: DocumentID("\(id)"), after: document)) { _, _ in }
            guard step % 40 == 39, let value else { continue }
            let expected = model.filter { JSONOrder.areEqual($0.value, value) }.count
            #expect(list(value, step).rows.count == expected, "step \(step)")
        }
        #expect(lists.fieldCount == 1)
    }

    @Test("a large array is read in parts by a search and by conditions")
    func arrays() {
        let fields = JSONObject(["l": .array((0..<500).map { .integer($0) })])
        let document = Document.todo("a", fields)
        var lists = MatchLists([document])
        let conditions = (0..<3).map { QueryCondition.field("l", contains: .integer(497 + $0)) }
        let list = lists.acquireList(MatchList.Key(CollectionQuery(where: conditions), for: nil)) { _ in true }
        var parts = 1
        var slice = ScanSlice(steps: 1)
        while !lists.continueScan(list, &slice) { (parts, slice) = (parts + 1, ScanSlice(steps: 1)) }
        #expect(parts >= 500 && parts < 1_500 && list.rows.count == 1, "\(parts)")
        lists.beginApplying(DocumentChange(id: "a", after: .todo("a", fields.with("n", .integer(1)))))
        (parts, slice) = (1, ScanSlice(steps: 1))
        while !lists.continueApplying(&slice, { _, _, _ in true }) { (parts, slice) = (parts + 1, ScanSlice(steps: 1)) }
        #expect(parts >= 1_500 && list.rows.count == 1, "\(parts)")
    }

    @Test("the values of ranges are bounded")
    func ranges() {
        let long = String(repeating: "x", count: 100_000)
        let range = ValueRange(.greater, .string(long))
        #expect(range?.lower == .string(String(repeating: "x", count: 512)))
        var index = QueryIndex()
        index.insert(1, [.field("t", isGreaterThan: .string(long))])
        for (text, isFound) in [(long + "a", true), (String(repeating: "x", count: 511), false)] {
            var search = QueryIndex.Search(DocumentRow(.todo("a", ["t": .string(text)])))
            var slice = ScanSlice.unlimited
            #expect(index.resume(&search, &slice) && search.found.contains(1) == isFound)
        }
    }

    @Test("an index counts for the caller that needs it, by documents and not by values, until its lists are gone")
    func memory() async throws {
        var limits = CollectionLimits()
        limits.idleQueryTime = .zero
        limits.writesPerConnection = RateLimit(callsPerSecond: 10_000, burst: 10_000)
        try await CollectionTestEnvironment.run(limits: limits) { environment in
            let guest = environment.guest("ada")
            try await guest.client.connect()
            let collection = try guest.collection()
            let text = String(repeating: "x", count: 500)
            for part in 0..<20 {
                let writes = (0..<100).map { number in
                    DocumentWrite(.add(DocumentID("\(part)-\(number)"), ["f": .string("\(part)-\(number)" + text)]))
                }
                let mutation = DocumentMutation(number: part + 1, writes: writes)
                #expect(try await collection.commit([mutation], from: "0123456789abcdef").map(\.error) == [nil])
            }
            let memory = environment.host.memory
            let before = memory.totalBytes
            func query(_ id: String) -> CollectionQuery {
                CollectionQuery(where: [.field("f", equals: .string(id + text))])
            }
            _ = try await collection.open(query("0-1"))
            let opened = memory.totalBytes
            _ = try await collection.open(query("0-2"))
            let index = memory.totalBytes - opened - (opened - before)
            #expect((90_000...110_000).contains(index), "\(index)")
            #expect(memory.bytes(of: QuotaHolder(principal: "ada", host: nil)) == memory.totalBytes - before)
            #expect(try await collection.get(query("5-5")).documents.map(\.id.text) == ["5-5"])
            for id in ["0-1", "0-2"] { try await collection.close(query(id)) }
            #expect(await eventually { memory.totalBytes == before })
        }
    }
}
