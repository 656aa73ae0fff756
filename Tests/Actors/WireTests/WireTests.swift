import Bytes
import Foundation
import Testing
import TrebuchetActors

@testable import TrebuchetWire

/// Compares types with and without `@Wire`, given the same values and texts: both encode alike, and each decodes the other's output.
/// `TREBUCHET_CODING_SEEDS=1-100000 swift test --filter WireTests` tries more seeds.
@Suite("Types with @Wire and without it") struct WireTests {
    private static let seeds: ClosedRange<UInt64> = {
        let ends = ProcessInfo.processInfo.environment["TREBUCHET_CODING_SEEDS"]?.split(separator: "-").compactMap {
            UInt64($0)
        }
        return ends.map { $0[0]...($0.last ?? $0[0]) } ?? 1...100
    }()

    private let coder = ValueCoder()

    private func plain(_ value: some Encodable) throws -> String {
        var buffer = ByteBuffer()
        try coder.encode(value, into: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    private func direct(_ value: some _WireValue) throws -> String {
        var buffer = ByteBuffer()
        try coder.encode(wire: value, into: &buffer)
        return String(decoding: buffer.bytes, as: UTF8.self)
    }

    private func read<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try Array(text.utf8).withUnsafeBytes { try coder.decode(type, from: $0) }
    }

    private func readDirectly<Value: _WireValue>(_ type: Value.Type, _ text: String) throws -> Value {
        try Array(text.utf8).withUnsafeBytes { try coder.decode(wire: type, from: $0) }
    }

    /// The encoded value, or the error without type names. Members are sorted, since the order of a dictionary is not deterministic.
    private func outcome(_ body: () throws -> String) -> String {
        do {
            let value = try JSONSerialization.jsonObject(with: Data(try body().utf8), options: .fragmentsAllowed)
            let options: JSONSerialization.WritingOptions = [.sortedKeys, .fragmentsAllowed]
            return String(decoding: try JSONSerialization.data(withJSONObject: value, options: options), as: UTF8.self)
        } catch {
            return "\(error)".replacing("Wire", with: "").replacing("Plain", with: "")
        }
    }

    @Test("values have the same JSON, through generated code, within other values and as Codable")
    func values() throws {
        for seed in Self.seeds {
            var draw = RandomValues(seed: seed)
            let value = PlainTrip(&draw)
            let text = try plain(value)
            let trip = try readDirectly(WireTrip.self, text)
            #expect(try direct(trip) == text, "seed \(seed)")
            #expect(try plain(trip) == text, "seed \(seed)")
            #expect(try read(WireTrip.self, text) == trip, "seed \(seed): \(text)")
            #expect(try plain(["a": [trip]]) == "{\"a\":[\(text)]}")
            #expect(try read([String: [WireTrip]].self, "{\"a\" : [\(text)]}") == ["a": [trip]])
            #expect(try readDirectly([WireTrip?].self, "[\(text),null]") == [trip, nil])
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            let json = try encoder.encode(trip)
            #expect(try json == encoder.encode(value), "seed \(seed)")
            #expect(try JSONDecoder().decode(WireTrip.self, from: json) == trip)
        }
    }

    @Test("generated code decodes its own output directly, without a second pass")
    func isTaken() throws {
        for seed in Self.seeds {
            var draw = RandomValues(seed: seed)
            let text = Array(try plain(PlainTrip(&draw)).utf8)
            let isRead = text.withUnsafeBytes { bytes in
                var reader = _WireReader(JSONCursor(bytes), coder: coder)
                return reader.all(WireTrip.self) != nil
            }
            #expect(isRead, "seed \(seed): \(String(decoding: text, as: UTF8.self))")
        }
    }

    @Test("almost valid texts are accepted and rejected alike, with the same error")
    func texts() throws {
        var (taken, refused) = (0, 0)
        for seed in Self.seeds {
            var draw = RandomValues(seed: seed)
            let value = try plain(PlainTrip(&draw))
            for _ in 0..<8 {
                let text = DrawnFault.made(in: value, &draw)
                let one = outcome { try plain(read(PlainTrip.self, text)) }
                #expect(outcome { try direct(readDirectly(WireTrip.self, text)) } == one, "seed \(seed): \(text)")
                #expect(outcome { try plain(read(WireTrip.self, text)) } == one, "seed \(seed): \(text)")
                let many = outcome { try plain(read([PlainTrip].self, "[\(text)]")) }
                #expect(outcome { try plain(read([WireTrip].self, "[\(text)]")) } == many, "seed \(seed): \(text)")
                if one.hasPrefix("{") { taken += 1 } else { refused += 1 }
            }
        }
        #expect(taken > 100 && refused > 100, "\(taken) accepted, \(refused) rejected")
    }

    @Test(
        "members in another order, absent, null, unknown, repeated and with white space are treated alike",
        arguments: [
            #"{"to":"b","from":"a","kilometres":1,"stops":2,"seats":[],"default":true}"#,
            #" { "from" : "a" , "to":"b","kilometres":1.5e3,"stops":2.0,"seats":[ 1 , null ],"default":true } "#,
            #"{"from":"a","to":"b","kilometres":1,"x":{"y":[1]},"stops":2,"seats":[],"default":true}"#,
            #"{"from":"a","from":"c","to":"b","kilometres":1,"stops":2,"seats":[],"default":true}"#,
            #"{"fr\u006fm":"a","to":"\ud83d\ude00","kilometres":1,"stops":2,"seats":[],"default":false}"#,
            #"{"from":null,"to":"b","kilometres":1,"stops":2,"seats":[],"default":true}"#,
            #"{"from":"a","to":"b","kilometres":1,"stops":2,"seats":[]}"#,
            #"{"from":"a","to":"b","kilometres":1,"stops":2.5,"seats":[],"default":true}"#,
            #"{"from":"a","to":"b","kilometres":1,"stops":2,"seats":[],"default":true}x"#,
            #"{"from":"a","to":"b","kilometres":1,"stops":2,"seats":[1,],"default":true}"#,
            "\u{FEFF}{\"from\":\"a\",\"to\":\"b\",\"kilometres\":1,\"stops\":2,\"seats\":[],\"default\":true}",
            "", "null", "[]", "{", "{}",
        ])
    func forms(text: String) throws {
        let one = outcome { try plain(read(PlainLeg.self, text)) }
        #expect(outcome { try plain(readDirectly(WireLeg.self, text)) } == one)
        #expect(outcome { try plain(read(WireLeg.self, text)) } == one)
    }

    @Test("a value without a JSON form is rejected with the same error, and leaves no partial output")
    func unrepresentable() throws {
        let text = #"{"from":"a","to":"b","kilometres":1,"stops":2,"seats":[],"default":true}"#
        var (wire, plainLeg) = (try read(WireLeg.self, text), try read(PlainLeg.self, text))
        (wire.kilometres, plainLeg.kilometres) = (.nan, .nan)
        let one = outcome { try plain([plainLeg]) }
        #expect(outcome { try plain([wire]) } == one)
        #expect(one.contains("kilometres"))
        var buffer = ByteBuffer()
        buffer.append("before" as StaticString)
        #expect(throws: EncodingError.self) { try coder.encode(wire: wire, into: &buffer) }
        #expect(throws: EncodingError.self) { try coder.encode([wire], into: &buffer) }
        #expect(String(decoding: buffer.bytes, as: UTF8.self) == "before")
    }

    @Test(
        "deeply nested values are equal, and those over the limit are rejected alike",
        arguments: [1, 31, 32, 33, 100, 255, 256, 300])
    func depth(levels: Int) throws {
        var (wire, plainTree) = (WireTree(name: "a", children: []), PlainTree(name: "a", children: []))
        for _ in 1..<levels {
            (wire, plainTree) = (WireTree(name: "b", children: [wire]), PlainTree(name: "b", children: [plainTree]))
        }
        let one = outcome { try plain(plainTree) }
        #expect(outcome { try direct(wire) } == one)
        #expect(outcome { try plain(wire) } == one)
        guard one.hasPrefix("{") else { return }
        #expect(try readDirectly(WireTree.self, one) == wire)
        // One level more may be one too many.
        let many = outcome { try plain(read([PlainTree].self, "[\(one)]")) }
        #expect(outcome { try plain(read([WireTree].self, "[\(one)]")) } == many)
    }

    @Test("types without members, and without required members, are treated alike")
    func empty() throws {
        #expect(try direct(WireNothing()) == "{}")
        #expect(try read(WireNothing.self, #"{"a":1}"#) == WireNothing())
        #expect(try direct(WireOnlyMaybe()) == "{}")
        #expect(try direct(WireOnlyMaybe(a: nil, b: "c")) == #"{"b":"c"}"#)
        #expect(try readDirectly(WireOnlyMaybe.self, #"{"b":"c"}"#) == WireOnlyMaybe(a: nil, b: "c"))
        #expect(try readDirectly(WireOnlyMaybe.self, #"{"b":"c","a":null}"#) == WireOnlyMaybe(a: nil, b: "c"))
    }

    @Test("a value whose object other code extends or reads in part has the same form")
    func shared() throws {
        let text = #"{"name":"a","children":[],"extra":7}"#
        let one = outcome { try plain(read(ExtendedObject<PlainTree>.self, text)) }
        #expect(try plain(read(ExtendedObject<PlainTree>.self, text)) == text)
        #expect(outcome { try plain(read(ExtendedObject<WireTree>.self, text)) } == one)
        let names = ExtendedObject(inner: WireTree(name: "a", children: []), extra: 7, name: "twice")
        let plainNames = ExtendedObject(inner: PlainTree(name: "a", children: []), extra: 7, name: "twice")
        #expect(try plain([names]) == plain([plainNames]))
        #expect(try plain(ExtendedObject(inner: WireOnlyMaybe(), extra: 1)) == #"{"extra":1}"#)
        let before = outcome { try plain(PrefixedObject(inner: PlainTree(name: "a", children: []))) }
        #expect(outcome { try plain(PrefixedObject(inner: WireTree(name: "a", children: []))) } == before)
    }
}

/// Encodes further members beside those of another value, in one object.
private struct ExtendedObject<Inner: Codable & Equatable>: Codable, Equatable {
    var inner: Inner
    var extra: Int
    var name: String?

    enum CodingKeys: CodingKey { case extra, name }

    init(inner: Inner, extra: Int, name: String? = nil) { (self.inner, self.extra, self.name) = (inner, extra, name) }

    init(from decoder: any Decoder) throws {
        inner = try Inner(from: decoder)
        extra = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .extra)
    }

    func encode(to encoder: any Encoder) throws {
        try inner.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(extra, forKey: .extra)
        try container.encodeIfPresent(name, forKey: .name)
    }
}

/// Encodes its member before those of another value.
private struct PrefixedObject<Inner: Codable>: Encodable {
    var inner: Inner

    enum CodingKeys: CodingKey { case first }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(1, forKey: .first)
        try inner.encode(to: encoder)
    }
}
