import Bytes
import Platform
import Testing
import TrebuchetWire

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite("Documents as stored text") struct StoredDocumentTests {
    private static let texts = ["", "a", "é", "e\u{301}", "日本", "\n", "\"\\", "a/b", "\u{1}", "x\u{10FFFF}", "null"]

    private static func value(_ random: inout RandomSource, depth: Int = 0) -> JSONValue {
        switch Int.random(in: 0..<(depth < 3 ? 9 : 7), using: &random) {
        case 0: .bool(.random(using: &random))
        case 1: .integer(.random(in: -3...3, using: &random))
        case 2: .integer(.random(in: .min ... .max, using: &random))
        case 3: .number(Double.random(in: -1e3...1e3, using: &random))
        case 4: .number([1e16, -2.5e300, 1e-7, 9.007199254740992e15].randomElement(using: &random)!)
        case 5, 6: .string(texts.randomElement(using: &random)! + texts.randomElement(using: &random)!)
        case 7: .array((0..<Int.random(in: 0..<3, using: &random)).map { _ in value(&random, depth: depth + 1) })
        default: .object(object(&random, depth: depth + 1))
        }
    }

    private static func object(_ random: inout RandomSource, depth: Int = 0) -> JSONObject {
        JSONObject(
            (0..<Int.random(in: 0..<6, using: &random)).map { _ in
                (key: texts.randomElement(using: &random)!, value: value(&random, depth: depth))
            })
    }

    private static func document(_ random: inout RandomSource) -> Document {
        var document = Document(
            id: DocumentID(texts.randomElement(using: &random)! + "\(Int.random(in: 0..<9, using: &random))"),
            fields: object(&random), creator: Bool.random(using: &random) ? texts.randomElement(using: &random) : nil,
            created: .random(in: 0..<1 << 50, using: &random), revision: .random(in: 0..<1 << 50, using: &random),
            createdAt: .random(in: 0..<1 << 40, using: &random), updatedAt: .random(in: 0..<1 << 40, using: &random),
            expiresAt: Bool.random(using: &random) ? .random(in: 0..<1 << 40, using: &random) : nil)
        if .random(using: &random) { document.origin = .random(in: .min ... .max, using: &random) }
        return document
    }

    private static func line(_ document: Document) -> [UInt8] {
        var line = ByteBuffer()
        document.writeStored(to: &line)
        return Array(line.bytes)
    }

    private static func stored(_ line: [UInt8]) -> Document? {
        var index = JSONObjectIndex()
        return line.withUnsafeBytes { Document(stored: $0, &index) }
    }

    /// A document is the same however it was made, also for functions that use its index.
    private static func expectSame(_ one: Document, _ other: Document) {
        #expect(one == other && line(one) == line(other))
        #expect(
            one.origin == other.origin && one.creator == other.creator
                && one.expiryMilliseconds == other.expiryMilliseconds)
        #expect(one.fields.names == other.fields.names && Array(one.fields.values) == Array(other.fields.values))
        #expect(one.fields.hasWideNumbers == other.fields.hasWideNumbers)
        for depth in 0..<6 { #expect(one.fields.isDeeper(than: depth) == other.fields.isDeeper(than: depth)) }
    }

    @Test("a stored line is read without parsing, or as any JSON, with the same result", arguments: UInt64(1)...200)
    func same(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        for _ in 0..<20 {
            let document = Self.document(&random)
            let line = Self.line(document)
            let parsed = try Document(json: line)
            Self.expectSame(parsed, document)
            guard let direct = Self.stored(line) else { continue }
            Self.expectSame(direct, document)
        }
    }

    @Test("usual documents are read without parsing")
    func usual() throws {
        let document = Document(
            id: "a-1",
            fields: [
                "id": .string("a-1"), "text": .string("a \"quoted\" é\n"), "n": .integer(-5), "x": .number(0.25),
                "list": .array([.null, .bool(true), .object(["a": .object([:])])]), "none": .array([]),
            ], creator: "ada", created: 7, revision: 8, createdAt: 9, updatedAt: 10, expiresAt: 11)
        let direct = try #require(Self.stored(Self.line(document)))
        Self.expectSame(direct, document)
    }

    @Test("a changed line is read as any JSON would be, or not at all", arguments: UInt64(1)...200)
    func changed(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        for _ in 0..<50 {
            var line = Self.line(Self.document(&random))
            let at = Int.random(in: line.indices, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: line[at] = .random(in: .min ... .max, using: &random)
            case 1: line.remove(at: at)
            case 2: line.insert(#" ,:"{}[]0e-\n"#.utf8.randomElement(using: &random)!, at: at)
            default: line.removeSubrange(at...)
            }
            guard let direct = Self.stored(line) else { continue }
            Self.expectSame(direct, try Document(json: line))
        }
    }

    @Test("other forms of a document are not read as canonical text")
    func others() {
        func line(_ fields: String) -> [UInt8] {
            Array(#"{"id":"a","fields":\#(fields),"created":1,"revision":2,"createdAt":3,"updatedAt":4}"#.utf8)
        }
        #expect(Self.stored(line("{}")) != nil)
        for fields in [
            #"{"b":1,"a":1}"#, #"{"a":1,"a":1}"#, #"{"a": 1}"#, #"{"a":null}"#, #"{"a":1.0}"#, #"{"a":01}"#,
            #"{"a":-0}"#, #"{"a":"\/"}"#, #"{"a":"\u0041"}"#, #"{"a":1e2}"#, #"{"a":1,}"#, #"{"a"}"#, "[]", "{",
            #"{"a":[1,]}"#, #"{"a":tru}"#, #"{"a":1e400}"#,
        ] {
            #expect(Self.stored(line(fields)) == nil, "\(fields)")
        }
        let deep = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
        #expect(Self.stored(line(#"{"a":\#(deep)}"#)) == nil)
    }

    @Test("a document in one buffer keeps all members when one changes")
    func changes() {
        var random = RandomSource(seed: 3)
        for _ in 0..<200 {
            let before = Self.document(&random)
            var document = before
            let other = Self.object(&random)
            document.fields = other
            document.expiryMilliseconds = document.expiryMilliseconds == nil ? 5 : nil
            document.origin = document.origin == nil ? 6 : nil
            (document.revision, document.updatedMilliseconds) = (-1, 12)
            #expect(document.fields == other && document.id == before.id && document.creator == before.creator)
            #expect(
                document.creationRevision == before.creationRevision
                    && document.createdMilliseconds == before.createdMilliseconds)
            #expect(document.revision == -1 && document.updatedMilliseconds == 12)
            #expect(document.expiryMilliseconds == (before.expiryMilliseconds == nil ? 5 : nil))
            #expect(document.origin == (before.origin == nil ? 6 : nil) && document != before)
        }
    }

    @Test("a map has the documents of a dictionary, whatever is added and removed", arguments: UInt64(1)...6)
    func map(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var map = DocumentMap()
        if seed.isMultiple(of: 2) { map.reserveCapacity(2_000) }
        var model: [DocumentID: Document] = [:]
        for step in 0..<12_000 {
            let id = DocumentID("\(Int.random(in: 0..<3_000, using: &random))")
            if Int.random(in: 0..<10, using: &random) < (step < 6_000 ? 7 : 3) {
                let document = Document(id: id, fields: [:], created: step)
                map[id] = document
                model[id] = document
            } else {
                #expect(map.remove(id) == model.removeValue(forKey: id))
            }
        }
        #expect(map.count == model.count && map == DocumentMap(model.values))
        for number in 0..<3_000 { #expect(map["\(number)"] == model["\(number)"]) }
    }
}
