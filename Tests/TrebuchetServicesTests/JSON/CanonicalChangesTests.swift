import Bytes
import Platform
import Testing

@testable import TrebuchetServices
@testable import TrebuchetServicesModel
@testable import TrebuchetWire

@Suite("Changes of objects as text") struct CanonicalChangesTests {
    private static let names = ["", "a", "b", "ab", "\"", "\\", "é", "z"]

    private static func value(_ random: inout RandomSource, depth: Int = 0) -> JSONValue {
        switch Int.random(in: 0..<(depth < 4 ? 10 : 5), using: &random) {
        case 0: .null
        case 1: .bool(.random(using: &random))
        case 2: .integer(.random(in: -3...3, using: &random))
        case 3: .string(["", "{", "a,b", "x:\"}", "\\"].randomElement(using: &random)!)
        case 4: .array((0..<Int.random(in: 0..<3, using: &random)).map { _ in value(&random, depth: depth + 1) })
        default: .object(object(&random, depth: depth + 1))
        }
    }

    private static func object(_ random: inout RandomSource, depth: Int = 0) -> JSONObject {
        JSONObject(
            (0..<Int.random(in: 0..<6, using: &random)).map { _ in
                (key: names.randomElement(using: &random)!, value: value(&random, depth: depth))
            })
    }

    @Test("texts of names are ordered as the bytes of the names")
    func nameOrder() {
        var random = RandomSource(seed: 11)
        let parts = ["", "a", "z", "u", "0", "\"", "\\", "\n", "\u{1}", "\u{1F}", "é", "😀"]
        func name() -> String {
            (0..<Int.random(in: 0..<8, using: &random)).map { _ in parts.randomElement(using: &random)! }.joined()
        }
        func text(_ name: String) -> [UInt8] {
            var buffer = ByteBuffer()
            JSONString.append(name, to: &buffer)
            return Array(buffer.bytes.dropFirst().dropLast())
        }
        for _ in 0..<20_000 {
            let start = name()
            let (one, other) = (start + name(), start + name())
            let expected =
                one.utf8.elementsEqual(other.utf8) ? 0 : one.utf8.lexicographicallyPrecedes(other.utf8) ? -1 : 1
            let order = text(one).withUnsafeBytes { one in
                text(other).withUnsafeBytes { CanonicalJSON.compareNames(one, $0).signum() }
            }
            #expect(order == expected, "\(one.debugDescription) \(other.debugDescription)")
        }
    }

    /// The algorithm of RFC 7396, section 2.
    private static func merged(_ target: JSONValue, _ patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var members = if case .object(let members) = target { members } else { JSONObject() }
        for (name, value) in changes {
            members[name] = value == .null ? nil : merged(members[name] ?? .null, value)
        }
        return .object(members)
    }

    /// Sets a value at a path, object by object; nil when the path does not exist.
    private static func setting(_ value: JSONValue?, at path: ArraySlice<String>, in object: JSONObject) -> JSONObject?
    {
        var object = object
        let name = path[path.startIndex]
        if path.count == 1 {
            guard value != nil || object[name] != nil else { return nil }
            object[name] = value
        } else {
            guard case .object(let inner)? = object[name], let inner = setting(value, at: path.dropFirst(), in: inner)
            else { return nil }
            object[name] = .object(inner)
        }
        return object
    }

    /// Writes a value with the members of each object in a random order.
    private static func shuffled(_ value: JSONValue, _ random: inout RandomSource) -> String {
        switch value {
        case .object(let members):
            let parts = members.sorted.shuffled(using: &random).map { name, value in
                String(decoding: JSONValue.string(name).json, as: UTF8.self) + ": " + shuffled(value, &random)
            }
            return "{" + parts.joined(separator: " ,") + "}"
        case .array(let elements): return "[" + elements.map { shuffled($0, &random) }.joined(separator: ", ") + "]"
        default: return String(decoding: value.json, as: UTF8.self)
        }
    }

    @Test("merge patches of nested objects have the result of RFC 7396", arguments: UInt64(1)...60)
    func merging(seed: UInt64) {
        var random = RandomSource(seed: seed)
        for _ in 0..<40 {
            let (before, patch) = (Self.object(&random), Self.object(&random))
            let after = before.merging(patch)
            #expect(JSONValue.object(after) == Self.merged(.object(before), .object(patch)))
            #expect(after.depth <= JSONValue.object(after).depth && !after.isDeeper(than: after.depth))
            // The index is that of the text.
            #expect(after.sorted.map(\.value) == after.names.map { after[$0] ?? .null })
        }
    }

    @Test("the differences of two objects, applied one by one, turn one into the other", arguments: UInt64(1)...60)
    func differences(seed: UInt64) {
        var random = RandomSource(seed: seed)
        for _ in 0..<40 {
            let before = Self.object(&random)
            let after = Bool.random(using: &random) ? Self.object(&random) : before.merging(Self.object(&random))
            var (steps, changed): ([([String], JSONValue?)], JSONObject) = ([], before)
            let isComplete = before.eachDifference(to: after) { path, old, new in
                #expect(old != nil || new != nil)
                steps.append((path.map { CanonicalJSON.string($0) }, new.map { JSONValue(canonical: $0) }))
                return true
            }
            #expect(isComplete)
            for (path, value) in steps {
                let json = value?.json ?? []
                let next = json.withUnsafeBytes { changed.setting(value == nil ? nil : $0, at: path[...]) }
                #expect(next == Self.setting(value, at: path[...], in: changed))
                changed = next ?? changed
            }
            #expect(changed == after)
            #expect(!before.eachDifference(to: after) { _, _, _ in false } || before == after)
        }
    }

    @Test("a value at a path that does not exist is not set", arguments: UInt64(1)...20)
    func missingPaths(seed: UInt64) {
        var random = RandomSource(seed: seed)
        for _ in 0..<100 {
            let object = Self.object(&random)
            let path = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                Self.names.randomElement(using: &random)!
            }
            let value: JSONValue? = Bool.random(using: &random) ? nil : Self.value(&random)
            let json = value?.json ?? []
            let changed = json.withUnsafeBytes { object.setting(value == nil ? nil : $0, at: path[...]) }
            #expect(changed == Self.setting(value, at: path[...], in: object), "\(path)")
        }
    }

    @Test("the members of nested objects are sorted, whatever their order was", arguments: UInt64(1)...40)
    func sorting(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        for _ in 0..<20 {
            let value = Self.value(&random)
            #expect(try JSONValue(json: Array(Self.shuffled(value, &random).utf8)).json == value.json)
        }
        #expect(throws: (any Error).self) { try JSONValue(json: Array(#"[{"b":{"x":1,"a":{},"x":2}}]"#.utf8)) }
    }

    @Test("placeholders of the server's time are replaced at any depth, and nothing in strings")
    func serverTime() throws {
        let text =
            #"{"a":{"$serverTime":true},"b":[[{"c":{"$serverTime":true}}],"{\"$serverTime\":true}"],"$serverTime":true}"#
        let object = try #require(try JSONObject(json: Array(text.utf8)) as JSONObject?)
        let expected = #"{"$serverTime":true,"a":7,"b":[[{"c":7}],"{\"$serverTime\":true}"]}"#
        #expect(String(decoding: JSONValue.object(object.settingServerTime(7)).json, as: UTF8.self) == expected)
        let placeholder: JSONObject = ["$serverTime": .bool(true)]
        #expect(placeholder.settingServerTime(7) == placeholder)
    }

    /// Returns an object of about 50 KB inside so many others, with its number members.
    private static func nested(_ depth: Int, _ first: Int) -> JSONObject {
        var object = JSONObject((0..<3_800).map { (key: "k\($0)", value: .integer(Int64($0 == 0 ? first : $0))) })
        for _ in 0..<depth { object = ["a": .object(object)] }
        return object
    }

    private static func shortestTime(_ body: () -> Void) -> Duration {
        (0..<7).map { _ in ContinuousClock().measure(body) }.min()!
    }

    @Test("work on an object 40 levels deep takes about as long as on a flat one of the same size")
    func depth() {
        let work: [(String, (Int) -> () -> Void)] = [
            (
                "merge",
                { depth in
                    let (one, other) = (Self.nested(depth, 0), Self.nested(depth, 1))
                    return { _ = one.merging(other) }
                }
            ),
            (
                "compare",
                { depth in
                    let (one, other) = (Self.nested(depth, 0), Self.nested(depth, 1))
                    return { _ = one.eachDifference(to: other) { _, _, _ in true } }
                }
            ),
            (
                "patch",
                { depth in
                    let (one, other) = (Self.nested(depth, 0), Self.nested(depth, 1))
                    return { _ = one.mergePatch(to: other) }
                }
            ),
            (
                "digest",
                { depth in
                    let mutation = DocumentMutation(number: 1, command: .add("a", Self.nested(depth, 0)))
                    return { _ = mutation.digest }
                }
            ),
            (
                "sort",
                { depth in
                    var text = String(decoding: JSONValue.object(Self.nested(0, 0)).json, as: UTF8.self)
                    for _ in 0..<depth { text = #"{"z":1,"a":\#(text)}"# }
                    let json = Array(text.utf8)
                    return { _ = try? JSONValue(json: json) }
                }
            ),
            (
                "read",
                { depth in
                    var value = JSONValue.array((0..<5_000).map { .integer($0) })
                    for _ in 0..<depth { value = .array([value]) }
                    let json = value.json
                    return { _ = json.withUnsafeBytes { JSONValue(canonical: $0) } }
                }
            ),
        ]
        for (name, prepare) in work {
            let (flat, deep) = (Self.shortestTime(prepare(1)), Self.shortestTime(prepare(40)))
            #expect(deep < flat * 8, "\(name): \(flat), \(deep)")
        }
    }
}
