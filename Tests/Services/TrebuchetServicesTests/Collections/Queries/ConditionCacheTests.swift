import Platform
import Testing
import Trebuchet

@testable import TrebuchetServices
@testable import TrebuchetServicesClient
@testable import TrebuchetServicesModel

@Suite("The cache of the conditions for one document") struct ConditionCacheTests {
    private static func value(_ random: inout RandomSource) -> JSONValue {
        switch Int.random(in: 0..<6, using: &random) {
        case 0: .integer(Int64.random(in: 0..<20, using: &random))
        case 1: .number(Double(Int.random(in: 0..<20, using: &random)) / 2)
        case 2: .string("x\(Int.random(in: 0..<20, using: &random))")
        case 3: .array([.integer(Int64.random(in: 0..<4, using: &random))])
        case 4: .object(["k": .integer(Int64.random(in: 0..<4, using: &random))])
        default: [.null, .bool(true), .bool(false)].randomElement(using: &random) ?? .null
        }
    }

    private static func object(_ random: inout RandomSource, depth: Int) -> JSONObject {
        var members: [String: JSONValue] = [:]
        for number in 0..<Int.random(in: 0..<120, using: &random) { members["m\(number)"] = value(&random) }
        for name in ["l", "é", "e\u{301}", "a.b"] where Bool.random(using: &random) {
            let count = Int.random(in: 0..<200, using: &random)
            members[name] = .array((0..<count).map { _ in value(&random) })
        }
        if depth > 0 { members["o"] = .object(object(&random, depth: depth - 1)) }
        return JSONObject(members.map { ($0.key, $0.value) })
    }

    @Test(
        "any number of conditions with one cache, in any slices, have the results of each alone",
        arguments: UInt64(1)...20)
    func model(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var fields = Self.object(&random, depth: 2)
        fields["id"] = .string("d")
        let document = Document(id: "d", fields: fields)
        let names = ["l", "é", "e\u{301}", "a\\.b", "m7", "m70", "missing"]
        let paths = names + names.map { "o.\($0)" } + names.map { "o.o.\($0)" } + ["o", "o.o", "o.m3.k"]
        var cache = ConditionCache()
        for _ in 0..<300 {
            let (path, value) = (paths.randomElement(using: &random) ?? "l", Self.value(&random))
            let condition: QueryCondition =
                switch Int.random(in: 0..<5, using: &random) {
                case 0: .field(path, equals: value)
                case 1: .field(path, isLessThan: value)
                default: .field(path, contains: value)
                }
            var found: Bool?
            while found == nil {
                var slice = ScanSlice(steps: 1)
                found = condition.matches(document, &cache, &slice)
            }
            #expect(found == condition.matches(document), "seed \(seed), \(path), \(value)")
        }
        #expect(cache.byteCount > 0)
    }

    @Test("the size of an indexed object includes its index")
    func indexSize() {
        let object = JSONObject((0..<1_000).map { (key: "\($0)", value: .integer(1)) })
        let document = Document(id: "d", fields: ["id": .string("d"), "o": .object(object)])
        var (cache, slice) = (ConditionCache(), ScanSlice.unlimited)
        for _ in 0..<2 { _ = QueryCondition.field("o.7", equals: .integer(1)).matches(document, &cache, &slice) }
        #expect(cache.byteCount >= object.buffer.count)
    }

    @Test("many conditions on elements at the end of a large array read it twice")
    func cost() {
        let count = 20_000
        let array = JSONValue.array((0..<count).map { .integer(Int64($0)) })
        let document = Document(id: "d", fields: ["id": .string("d"), "l": array])
        func time(_ conditions: Int) -> Duration {
            ContinuousClock().measure {
                var (cache, slice) = (ConditionCache(), ScanSlice.unlimited)
                for number in 0..<conditions {
                    let condition = QueryCondition.field("l", contains: .integer(Int64(count - 1 - number)))
                    #expect(condition.matches(document, &cache, &slice) == true)
                }
            }
        }
        // Each would walk the array: 500 times as long as the first two.
        let (few, many) = (time(10), time(1_000))
        #expect(many < few * 20, "\(few), \(many)")
    }
}
