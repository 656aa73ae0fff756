import Testing
import TrebuchetWire

@testable import TrebuchetActors

/// Decoding of persisted states, without an actor.
@Suite struct StoredStateDecoderTests {
    private struct StoredFixture: Codable, Equatable {
        var name = "initial"
        var limits = Limits()
        var note: String?
        var byName: [String: Limits] = ["first": Limits(most: 1, least: 2)]
        var all = [Limits(most: 3, least: 4)]

        struct Limits: Codable, Equatable {
            var most = 10
            var least = 1
        }
    }

    /// Like `StoredFixture` with an empty dictionary and an empty array.
    private static let rest = #""byName":{},"all":[]"#

    private func read(_ text: String, initial: StoredFixture = StoredFixture(), _ version: _StateVersion = .init())
        throws -> StoredFixture
    {
        try StoredStateDecoder(version: version, coder: ValueCoder()).read(
            StoredState(Array(text.utf8)), initial: initial
        )
        .value
    }

    private func message(_ text: String, _ version: _StateVersion = .init()) -> String {
        do {
            return "\(try read(text, version)) was read"
        } catch {
            return "\(error)"
        }
    }

    @Test("each missing member, also of nested objects, gets its initial value, and no other member does")
    func filling() throws {
        let initial = StoredFixture(name: "given", note: "first")
        var expected = StoredFixture(name: "given", byName: [:], all: [])
        #expect(
            try read(#"{"limits":{"most":10,"least":1},\#(Self.rest)}"#, initial: initial) == expected, "not the note")
        expected.limits = StoredFixture.Limits(most: 5)
        #expect(try read(#"{"limits":{"most":5},\#(Self.rest)}"#, initial: initial) == expected)
        expected.limits = StoredFixture.Limits()
        #expect(try read(#"{\#(Self.rest)}"#, initial: initial) == expected)
        #expect(try read("{}", initial: initial).all == initial.all, "a missing array is one member")
    }

    @Test("members of elements are not filled, but those of a dictionary where the initial value has the key")
    func elements() throws {
        let elements = message(#"{"all":[{"most":1}]}"#)
        #expect(
            elements.contains("its member 'all.0.least' does not match the type: make the member optional"))
        let values = message(#"{"byName":{"second":{"most":1}}}"#)
        #expect(values.contains("its member 'byName.second.least'"), "\(values)")
        #expect(
            try read(#"{"byName":{"first":{"most":9}}}"#).byName == ["first": StoredFixture.Limits(most: 9, least: 2)])
    }

    @Test("a member of another type is not a missing member")
    func mismatch() {
        let text = message(#"{"name":5}"#)
        #expect(text.contains("its member 'name' does not match the type: extend the type's decoding, or"), "\(text)")
        #expect(message(#"{"limits":[]}"#).contains("its member 'limits'"))
        #expect(message("[]").contains("its value does not"))
        #expect(message("v2").contains("its value does not"), "no version is named there")
    }

    @Test("the error has advice that depends on the versions of the store and the program")
    func remedies() {
        let text = #"{"name":5}"#
        #expect(message(text).contains("version: 2, migrate: { json, from in … })'"))
        #expect(message("v4:" + text, .init(4)).contains("version: 5, migrate: { json, from in … })'"))
        #expect(message(text, .init(2)).contains("add 'migrate: { json, from in … }' after 'version: 2'"))
        #expect(message(text, .init(2) { _, _ in }).contains("let 'migrate' convert values of version 1"))
        #expect(message("v3:{}", .init(2)).contains("schema version 3 is newer than this program's version 2"))
    }

    @Test("migrations receive only older versions, with their number; then members are filled")
    func migration() throws {
        let version = _StateVersion(3) { json, from in json["name"] = "from \(from)" }
        #expect(try read("{}", version).name == "from 1")
        #expect(try read("v2:{}", version) == StoredFixture(name: "from 2"))
        #expect(try read("v3:{}", version).name == "initial")
        #expect(try read("{}", .init(3)).name == "initial", "a migration is optional")
    }

    @Test("the result says whether the value is new, that is filled or migrated")
    func isNew() throws {
        func isNew(_ text: String, _ version: _StateVersion = .init()) throws -> Bool {
            try StoredStateDecoder(version: version, coder: ValueCoder())
                .read(StoredState(Array(text.utf8)), initial: StoredFixture()).isNew
        }
        let whole = #"{"name":"a","limits":{"most":1,"least":1},\#(Self.rest)}"#
        #expect(try !isNew(whole))
        #expect(try !isNew(whole, .init(2)))
        #expect(try isNew(#"{\#(Self.rest)}"#))
        #expect(try isNew(whole, .init(2) { _, _ in }))
    }

    @Test("a state that lacks more members than the bound is an error, however many it has")
    func bound() throws {
        struct Wide: Codable {
            var members: [Int] = []

            struct Key: CodingKey {
                var stringValue: String
                var intValue: Int? { nil }
                init(_ number: Int) { stringValue = "m\(number)" }
                init?(stringValue: String) { self.stringValue = stringValue }
                init?(intValue: Int) { nil }
            }

            init(count: Int) { members = Array(0..<count) }
            init(from decoder: any Decoder) throws {
                let values = try decoder.container(keyedBy: Key.self)
                let count = try values.decode(Int.self, forKey: Key(-1))
                members = try (0..<count).map { try values.decode(Int.self, forKey: Key($0)) }
            }
            func encode(to encoder: any Encoder) throws {
                var values = encoder.container(keyedBy: Key.self)
                try values.encode(members.count, forKey: Key(-1))
                for (index, member) in members.enumerated() { try values.encode(member, forKey: Key(index)) }
            }
        }
        let reader = StoredStateDecoder(version: .init(), coder: ValueCoder())
        let most = Wide(count: StoredStateDecoder.maximumFilledElements - 1)
        #expect(try reader.read(StoredState(Array("{}".utf8)), initial: most).value.members == most.members)
        #expect(throws: StoredStateDecodingError.self) {
            try reader.read(
                StoredState(Array("{}".utf8)), initial: Wide(count: StoredStateDecoder.maximumFilledElements))
        }
    }

    @Test(
        "the version precedes the JSON unless it is the first",
        arguments: [
            ("{}", 1, "{}"), ("v2:{}", 2, "{}"), ("v1000:[]", 1_000, "[]"), ("v1:0", 1, "0"), ("", 1, ""),
            ("v", 1, "v"),
            ("v0:{}", 1, "v0:{}"), ("v-2:{}", 1, "v-2:{}"), ("v+2:{}", 1, "v+2:{}"), ("v:{}", 1, "v:{}"),
            ("v99999999999999999999:{}", 1, "v99999999999999999999:{}"), ("v2:", 2, ""),
        ])
    func stored(text: String, version: Int, json: String) {
        let stored = StoredState(Array(text.utf8))
        #expect(stored.version == version)
        #expect(String(decoding: stored.json, as: UTF8.self) == json)
        #expect(stored.bytes == Array(text.utf8))
        guard version > 1 else { return }
        #expect(StoredState(version: version, json: Array(json.utf8)).bytes == Array(text.utf8))
    }

    @Test("the first version is stored as JSON alone")
    func first() {
        let stored = StoredState(version: 1, json: Array("[1]".utf8))
        #expect(stored.bytes == Array("[1]".utf8))
        #expect(stored.json.elementsEqual("[1]".utf8))
    }
}
