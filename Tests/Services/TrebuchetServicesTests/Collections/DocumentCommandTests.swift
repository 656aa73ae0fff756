import Foundation
import Platform
import Testing
import TrebuchetTesting
import TrebuchetWire

@testable import TrebuchetServices
@testable import TrebuchetServicesModel

@Suite("Commands of collections") struct DocumentCommandTests {
    private func json(_ text: String) throws -> JSONValue { try JSONValue(json: Array(text.utf8)) }

    private func text(_ value: JSONValue) -> String { String(decoding: value.json, as: UTF8.self) }

    @Test("the target of a link in a collection is the id of a document")
    func linkTargets() throws {
        for target in ["{\"a\":1}", "null", "1.5", "[\"b\"]", "true"] {
            let link = #"{"link":{"id":"a","field":"l","target":\#(target),"in":"people"}}"#
            let value = try json(link)
            #expect(throws: CollectionError.self) { try DocumentWrite(value) }
        }
        #expect(
            try DocumentWrite(json(#"{"link":{"id":"a","field":"l","target":7,"in":"people"}}"#)).command.target?.id
                == "7")
    }

    @Test("each command is encoded as JSON, and decodes unchanged")
    func shapes() throws {
        let table: [(DocumentWrite, String)] = [
            (DocumentWrite(.add("a")), #"{"create":{"fields":{"id":"a"},"id":"a"}}"#),
            (
                DocumentWrite(.create(id: "a", fields: [:], expiresIn: .milliseconds(1_500))),
                #"{"create":{"expiresIn":1.5,"fields":{},"id":"a"}}"#
            ),
            (
                DocumentWrite(.update(id: "a", fields: ["v": .null]), if: .field("v", equals: .integer(1))),
                #"{"update":{"fields":{"v":null},"id":"a","if":{"v":1}}}"#
            ),
            (
                DocumentWrite(.merge(id: "a", fields: ["v": .object(["w": .bool(true)])]), if: .revision(7)),
                #"{"merge":{"fields":{"v":{"w":true}},"id":"a","ifRevision":7}}"#
            ),
            (
                DocumentWrite(.increment(id: "a", field: "n", by: .number(0.5))),
                #"{"increment":{"by":0.5,"field":"n","id":"a"}}"#
            ),
            (DocumentWrite(.delete(id: "a")), #"{"delete":{"id":"a"}}"#),
            (
                DocumentWrite(.link(id: "a", field: "l", target: .string("b"))),
                #"{"link":{"field":"l","id":"a","target":"b"}}"#
            ),
            (
                DocumentWrite(.link(id: "a", field: "l", target: .string("b"), in: "people")),
                #"{"link":{"field":"l","id":"a","in":"people","target":"b"}}"#
            ),
            (
                DocumentWrite(.unlink(id: "a", field: "l", target: .null)),
                #"{"unlink":{"field":"l","id":"a","target":null}}"#
            ),
            (DocumentWrite(.expire(id: "a", expiresIn: .seconds(60))), #"{"expire":{"expiresIn":60,"id":"a"}}"#),
            (DocumentWrite(.expire(id: "a", expiresIn: nil)), #"{"expire":{"id":"a"}}"#),
            (DocumentWrite(.check(id: "a"), if: .absent), #"{"check":{"id":"a","ifAbsent":true}}"#),
        ]
        for (write, expected) in table {
            #expect(text(write.value) == expected)
            #expect(try DocumentWrite(json(expected)) == write)
            #expect(write.byteCount >= expected.utf8.count, "\(expected)")
        }
        let one = DocumentMutation(number: 1, command: .delete(id: "a"))
        #expect(text(one.value) == #"{"command":{"delete":{"id":"a"}},"number":1}"#)
        let two = DocumentMutation(
            number: 2, writes: [DocumentWrite(.delete(id: "a")), DocumentWrite(.delete(id: "b"))])
        #expect(text(two.value) == #"{"commands":[{"delete":{"id":"a"}},{"delete":{"id":"b"}}],"number":2}"#)
        for mutation in [one, two] { #expect(try DocumentMutation(mutation.value) == mutation) }
        #expect(try DocumentWrite(json(#"{"delete":{"id":7}}"#)).command.id == "7")
    }

    @Test("invalid commands are refused, and so is a condition with an invalid name")
    func invalid() throws {
        for text in [
            "1", "{}", #"{"delete":1}"#, #"{"delete":{}}"#, #"{"delete":{"id":1.5}}"#, #"{"remove":{"id":"a"}}"#,
            #"{"delete":{"id":"a"},"create":{"id":"a","fields":{}}}"#, #"{"delete":{"id":"a","ifRevison":1}}"#,
            #"{"update":{"id":"a"}}"#, #"{"update":{"id":"a","fields":[]}}"#, #"{"link":{"id":"a","field":"l"}}"#,
            #"{"link":{"id":"a","field":"l","target":"b","in":"a/b"}}"#,
            #"{"increment":{"id":"a","field":"n","by":"1"}}"#, #"{"delete":{"id":"a","if":true}}"#,
            #"{"delete":{"id":"a","ifRevision":"1"}}"#, #"{"delete":{"id":"a","ifAbsent":1}}"#,
            #"{"create":{"id":"a","fields":{},"expiresIn":"1"}}"#,
            #"{"create":{"id":"a","fields":{},"expiresIn":1e300}}"#,
        ] {
            let value = try json(text)
            #expect(throws: CollectionError.self, "\(text)") { try DocumentWrite(value) }
        }
        for text in [
            #"{"number":0,"command":{"delete":{"id":"a"}}}"#, #"{"command":{"delete":{"id":"a"}}}"#,
            #"{"number":1,"commands":[]}"#, #"{"number":1}"#, "[]",
            #"{"number":1,"command":{"delete":{"id":"a"}},"commands":[{"delete":{"id":"a"}}]}"#,
        ] {
            let value = try json(text)
            #expect(throws: CollectionError.self, "\(text)") { try DocumentMutation(value) }
        }
        let many = JSONValue.object([
            "number": .integer(1),
            "commands": .array(Array(repeating: DocumentWrite(.delete(id: "a")).value, count: 101)),
        ])
        #expect(throws: CollectionError.tooManyCommands(limit: 100)) { try DocumentMutation(many) }
    }

    @Test("each command has its effect on a document")
    func performing() throws {
        let large = JSONValue.integer(.max)
        let document = Document.todo(
            "a",
            [
                "n": .integer(1), "d": .number(0.5), "max": large, "t": .string("x"), "l": .array([.integer(1)]),
                "o": .object(["p": .integer(1), "q": .object(["r": .integer(2)])]),
            ])
        let table: [(DocumentCommand, Result<JSONObject, CollectionError>)] = [
            (.increment(id: "a", field: "n", by: .integer(-3)), .success(["n": .integer(-2)])),
            (.increment(id: "a", field: "n", by: .number(0.5)), .success(["n": .number(1.5)])),
            (.increment(id: "a", field: "d", by: .number(0.5)), .success(["d": .integer(1)])),
            (.increment(id: "a", field: "d", by: .integer(1)), .success(["d": .number(1.5)])),
            (.increment(id: "a", field: "new", by: .integer(2)), .success(["new": .integer(2)])),
            (.increment(id: "a", field: "max", by: .integer(-1)), .success(["max": .integer(.max - 1)])),
            (.increment(id: "a", field: "max", by: .integer(1)), .failure(.numberOverflow(id: "a", field: "max"))),
            (.increment(id: "a", field: "t", by: .integer(1)), .failure(.notANumber(id: "a", field: "t"))),
            (.link(id: "a", field: "l", target: .integer(2)), .success(["l": .array([.integer(1), .integer(2)])])),
            (.link(id: "a", field: "new", target: .integer(2)), .success(["new": .array([.integer(2)])])),
            (.link(id: "a", field: "t", target: .integer(2)), .failure(.notAnArray(id: "a", field: "t"))),
            (.unlink(id: "a", field: "t", target: .string("x")), .failure(.notAnArray(id: "a", field: "t"))),
            (.unlink(id: "a", field: "o", target: .string("x")), .failure(.notAnArray(id: "a", field: "o"))),
            (.unlink(id: "a", field: "new", target: .integer(2)), .success(["new": .null])),
            (
                .merge(id: "a", fields: ["o": .object(["q": .object(["r": .null, "s": .integer(3)])]), "t": .null]),
                .success([
                    "o": .object(["p": .integer(1), "q": .object(["s": .integer(3)])]), "t": .null, "n": .integer(1),
                ])
            ),
            (
                .update(id: "a", fields: ["o": .object(["q": .serverTime]), "n": .array([.serverTime])]),
                .success(["o": .object(["q": .integer(77)]), "n": .array([.integer(77)])])
            ),
            (.merge(id: "a", fields: ["n": .serverTime]), .success(["n": .integer(77)])),
            (.check(id: "a"), .success(["n": .integer(1)])),
        ]
        let context = CommandContext(number: 9, time: 77)
        for (command, expected) in table {
            do throws(CollectionError) {
                let after = try command.perform(on: document, context)
                guard case .success(let fields) = expected else {
                    Issue.record("\(command) was executed")
                    continue
                }
                for (name, value) in fields { #expect(after?.fields[name] ?? .null == value, "\(command)") }
            } catch {
                #expect(expected == .failure(error), "\(command)")
            }
        }
        let created = try DocumentCommand.create(id: "b", fields: ["at": .serverTime], expiresIn: .seconds(1))
            .perform(on: nil, context)
        #expect(
            created?.fields == ["at": .integer(77)] && created?.expiryMilliseconds == 1_077
                && created?.createdMilliseconds == 77
        )
        #expect(try DocumentCommand.expire(id: "b", expiresIn: nil).perform(on: created, context)?.expiresAt == nil)
        for duration in [Duration.zero, .seconds(-1), .seconds(4_000_000_000)] {
            #expect(throws: CollectionError.self) {
                try DocumentCommand.expire(id: "b", expiresIn: duration).perform(on: created, context)
            }
        }
        for command in [
            DocumentCommand.increment(id: "x", field: "n", by: .integer(1)), .merge(id: "x", fields: [:]),
            .expire(id: "x", expiresIn: nil), .link(id: "x", field: "l", target: .null),
        ] {
            #expect(throws: CollectionError.notFound(id: "x")) { try command.perform(on: nil, context) }
        }
    }

    @Test("a condition is checked, and a failed one reports the current values")
    func conditions() {
        let document = Document(
            id: "a", fields: ["n": .integer(1), "t": .string(String(repeating: "x", count: 300))], revision: 4)
        let table: [(WriteCondition, forDocument: Bool, forNone: Bool)] = [
            (.field("n", equals: .integer(1)), true, false), (.field("n", equals: .number(1)), true, false),
            (.field("n", equals: .integer(2)), false, false), (.field("m", equals: .null), true, false),
            (.fields(["n": .integer(1), "m": .integer(1)]), false, false), (.revision(4), true, false),
            (.revision(3), false, false), (.absent, false, true),
        ]
        for (condition, forDocument, forNone) in table {
            #expect(condition.isSatisfied(by: document) == forDocument, "\(condition)")
            #expect(condition.isSatisfied(by: nil) == forNone, "\(condition)")
        }
        #expect(
            WriteCondition.fields(["n": .null, "t": .null, "m": .integer(1)]).failure("a", document)
                == .conditionFailed(id: "a", revision: 4, found: ["n": .integer(1)]), "large values are left out")
        #expect(WriteCondition.revision(1).failure("a", nil) == .conditionFailed(id: "a", revision: nil, found: [:]))
    }

    @Test("a server time is a placeholder in a written document, and milliseconds in a read one")
    func serverTime() throws {
        struct Message: Codable, Equatable { var sentAt: ServerTime }
        let waiting = try JSONValue(encoding: Message(sentAt: .now))
        #expect(text(waiting) == #"{"sentAt":{"$serverTime":true}}"#)
        #expect(try waiting.decode(Message.self) == Message(sentAt: .now))
        let set = try json(#"{"sentAt":1500}"#).decode(Message.self)
        #expect(set.sentAt.milliseconds == 1_500 && set.sentAt.date?.timeIntervalSince1970 == 1.5)
        #expect(throws: (any Error).self) { try json(#"{"sentAt":"x"}"#).decode(Message.self) }
    }

    @Test("a document from an older server, without write times, has none")
    func older() throws {
        let text = Array(#"{"id":"a","fields":{"id":"a"},"created":7,"revision":9}"#.utf8)
        let document = try text.withUnsafeBytes { try ValueCoder().decode(Document.self, from: $0) }
        let times: [Int] = [
            document.creationRevision, document.revision, document.createdMilliseconds, document.updatedMilliseconds,
        ]
        #expect(times == [7, 9, 0, 0])
    }

    @Test("a document's size is that of its JSON, with any escapes")
    func bytes() throws {
        for fields in [[:], ["t": .string("\u{1}\u{2}\"\\/é\u{2028}")], ["a\u{7}": .array([.number(1e-7), .null])]]
            as [JSONObject]
        {
            for creator in [nil, "eve\u{3}"] {
                for expiresAt in [nil, 12_345] {
                    let document = Document(
                        id: "i\u{1}", fields: fields, creator: creator, created: 7, revision: 1_000, createdAt: 0,
                        updatedAt: -5, expiresAt: expiresAt)
                    #expect(document.encodedByteCount == (try document.json()).count + 1)
                    let coder = ValueCoder()
                    let decoded = try document.json().withUnsafeBytes { try coder.decode(Document.self, from: $0) }
                    #expect(decoded == document)
                    #expect(try JSONValue(encoding: [document]).json.count <= document.encodedByteCount + 2)
                }
            }
        }
    }

    @Test("documents expire in the order of their times, even when these are changed", arguments: UInt64(1)...10)
    func expiryQueue(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var times: [DocumentID: Int] = [:]
        var queue = ExpiryQueue([])
        for now in 0..<500 {
            for _ in 0..<3 {
                let id: DocumentID = "\(Int.random(in: 0..<40, using: &random))"
                let time =
                    Int.random(in: 0..<3, using: &random) == 0 ? nil : now + Int.random(in: 1..<50, using: &random)
                times[id] = time
                queue.set(time, for: id)
            }
            let next = queue.next()
            #expect(next == times.values.min())
            var taken: Set<DocumentID> = []
            while let id = queue.removeExpired(at: now) { taken.insert(id) }
            #expect(taken == Set(times.filter { $0.value <= now }.keys))
            for id in taken { times[id] = nil }
            #expect(queue.count == times.count)
        }
    }

    @Test("keys are ordered by their last use", arguments: UInt64(1)...10)
    func leastRecent(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var (keys, model) = (LRUOrder<Int>(), [Int]())
        for _ in 0..<1_000 {
            let key = Int.random(in: 0..<20, using: &random)
            model.removeAll { $0 == key }
            if Int.random(in: 0..<4, using: &random) == 0 {
                keys.remove(key)
            } else {
                keys.markUsed(key)
                model.append(key)
            }
            #expect(keys.first == model.first && keys.count == model.count)
        }
        while let first = keys.first {
            #expect(first == model.removeFirst())
            keys.remove(first)
        }
        #expect(model.isEmpty)
    }

    @Test("links change only the linked value of an array, whatever the others are", arguments: UInt64(1)...5)
    func links(seed: UInt64) throws {
        var random = RandomSource(seed: seed)
        let values: [JSONValue] = [
            .null, .bool(true), .integer(1), .integer(12), .number(1.5), .string("a"), .string("a\"],[\\"), .array([]),
            .array([.integer(1), .string("]")]), .object([:]), .object(["a": .array([.integer(1)])]),
        ]
        var document = Document.todo("a")
        var model: [JSONValue] = []
        for _ in 0..<200 {
            let value = values.randomElement(using: &random)!
            let isLinked = Bool.random(using: &random)
            try document.setLink(isLinked, "l", value)
            if isLinked { if !model.contains(value) { model.append(value) } } else { model.removeAll { $0 == value } }
            #expect(document.fields["l"] ?? .array([]) == .array(model))
        }
        let twice = Document.todo("a", ["l": .array([.integer(1), .integer(2), .integer(1)])])
        var unlinked = twice
        try unlinked.setLink(false, "l", .integer(1))
        #expect(unlinked.fields["l"] == .array([.integer(2)]))
        var text = Document.todo("a", ["l": .string("[1]")])
        #expect(throws: CollectionError.notAnArray(id: "a", field: "l")) { try text.setLink(true, "l", .integer(1)) }
    }

    @Test(
        "a condition on a field holds for an equal value, and null for a missing one",
        arguments: [
            (#"{"a":1}"#, #"{"a":1.0}"#, true), (#"{"a":1}"#, #"{"a":2}"#, false),
            (#"{"a":"x"}"#, #"{"a":"\u0078"}"#, true),
            (#"{"a":"caf\u00e9"}"#, #"{"a":"cafe\u0301"}"#, false),
            (#"{"a":{"b":1,"c":[]}}"#, #"{"a":{"c":[],"b":1}}"#, true),
            (#"{"a":[1,2]}"#, #"{"a":[1]}"#, false), (#"{}"#, #"{"a":null}"#, true),
            (#"{"a":null}"#, #"{"a":null}"#, true),
            (#"{}"#, #"{"a":0}"#, false), (#"{"a":0}"#, #"{"a":null}"#, false),
            (#"{"a":"null"}"#, #"{"a":null}"#, false),
            (#"{"a":9007199254740993}"#, #"{"a":9007199254740992.0}"#, false),
            (#"{"a":9007199254740992}"#, #"{"a":9007199254740992.0}"#, true),
            (#"{"a":1,"b":2}"#, #"{"a":1,"b":3}"#, false),
        ])
    func condition(fields: String, condition: String, holds: Bool) throws {
        guard case .object(let fields) = try json(fields), case .object(let wanted) = try json(condition) else {
            Issue.record("not objects")
            return
        }
        let document = Document(id: "x", fields: fields)
        #expect(WriteCondition(fields: wanted).isSatisfied(by: document) == holds)
        let isEqual = wanted.allSatisfy { JSONOrder.areEqual(document.fields[$0.name], $0.value) }
        #expect(isEqual == holds)
    }
}
