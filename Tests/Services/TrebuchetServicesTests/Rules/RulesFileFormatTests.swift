import Foundation
import Testing
import Trebuchet

@testable import TrebuchetServices

@Suite struct RulesFileFormatTests {
    private func problems(_ text: String) -> [String] {
        do throws(RulesFileError) {
            _ = try RulesFile(json: Array(text.utf8), file: "rules.json")
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test(
        "invalid JSON is reported with line and column",
        arguments: [
            ("", "rules.json:1:1: the text ends before a value"),
            ("{\n  \"collections\": {}\n  \"rooms\": {}\n}", "rules.json:3:3: expected ',' or '}'"),
            ("{\"collections\": {},\n}", "rules.json:2:1: expected '\"'"),
            ("{}\n{}", "rules.json:2:1: text after the end of the message"),
            ("{\"é\": // no comments\n1}", "rules.json:1:7: expected a value"),
        ])
    func syntax(text: String, problem: String) { #expect(problems(text) == [problem]) }

    @Test("a byte order mark before the text is ignored")
    func byteOrderMark() throws {
        #expect(problems("\u{FEFF}{}") == [])
        #expect(problems("\u{FEFF}{\n}}") == ["rules.json:2:2: text after the end of the message"])
        #expect(problems("{}\u{FEFF}") == ["rules.json:1:3: text after the end of the message"])
    }

    @Test("fields whose names look alike and have other bytes have separate rules")
    func alike() throws {
        let text = #"{"collections":{"a":{"fields":{"\u00e9":{"immutable":true},"e\u0301":{"type":"string"}}}}}"#
        let fields = try RulesFile(json: Array(text.utf8)).collection("a").fields ?? []
        #expect(fields.map { Array($0.name.utf8) } == [Array("e\u{301}".utf8), Array("\u{E9}".utf8)])
        #expect(fields.map(\.isImmutable) == [false, true])
    }

    @Test(
        "a file of the maximum size takes at most seconds, whatever problems it has",
        arguments: [
            (#""collections":{"a":{"fields":{"#, #""f#":{}"#, "}}}"), (#""collections":{"a":{"#, #""f#":1"#, "}}"),
            (#""collections":{"a":{"read":["#, #""q#""#, "]}}"),
            (#""roles":["#, #""r#""#, #"],"collections":{"a":{"read":"rr"}}"#),
        ])
    func large(head: String, entry: String, end: String) {
        let entries = (0..<40_000).map { entry.replacing("#", with: "\($0)") }
        let text = "{" + head + entries.joined(separator: ",\n") + end + "}"
        #expect(text.utf8.count <= RulesFile.maximumFileLength)
        let clock = ContinuousClock()
        let began = clock.now
        _ = problems(text)
        #expect(clock.now - began < .seconds(20))
    }

    @Test("the first of very many problems are reported")
    func many() {
        let text = "{" + (0..<5_000).map { "\"f\($0)\":1" }.joined(separator: ",\n") + "}"
        let found = problems(text)
        #expect(found.count == 1_001 && found[999].hasPrefix("rules.json:1000: "))
        #expect(found.last == "rules.json: 4000 more problems")
        let long = problems("{\"\(String(repeating: "x", count: 100_000))\":1}")
        #expect(long.count == 1 && long[0].utf8.count < 1_000)
    }

    @Test("a pipe is read, without waiting for missing data", .timeLimit(.minutes(5)))
    func pipes() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/rules"
        #expect(mkfifo(path, 0o600) == 0)
        let error = #expect(throws: RulesFileError.self) {
            try RulesFile(contentsOfFile: path, patienceMilliseconds: 1)
        }
        #expect(error?.description == "\(path): is not a regular file and has no data")
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data(#"{"roles":["a"]}"#.utf8))
        try pipe.fileHandleForWriting.close()
        let read = try RulesFile(contentsOfFile: "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)")
        #expect(read.roles == ["a"])
    }

    @Test("text that is not UTF-8 is reported with its line")
    func notUTF8() throws {
        let error = try #require(throws: RulesFileError.self) {
            try RulesFile(json: Array("{\n\"".utf8) + [0xFF] + Array("\": 1}".utf8), file: "f")
        }
        #expect(error.description == "f:2:1: not valid UTF-8")
    }

    /// One problem for each of its lines.
    private static let wrong = #"""
        {
          "roles": ["editor", "user", "a b"],
          "colections": {},
          "collections": {
            "todos": {
              "update": "usr",
              "create": "creator",
              "delete": ["nobody", "editor"],
              "read": 1,
              "reed": "anyone",
              "fields": {
                "title": { "type": "strng" },
                "done": { "type": "boolean", "maxLength": 3 },
                "state": { "type": "string", "enum": ["open", 1] },
                "tags": { "type": "array", "maxLength": -1, "required": true },
                "kind": { "enum": [] },
                "kind": {},
                "by": { "write": "somebody", "immutable": true }
              },
              "otherFields": "no",
              "limits": { "documents": 0, "bytes": 10,
                "writesPerSecond": -2,
                "writesAtOnce": 1.5 }
            },
            "a/b": {},
            "log-*": []
          },
          "rooms": {
            "chat": { "join": "no-creator",
              "publish": [],
              "members": 0 }
          }
        }
        """#

    @Test("every problem is reported with its line, its member and its remedy")
    func members() {
        #expect(
            problems(Self.wrong) == [
                "rules.json:2: roles: 'user' is built in and must not be listed",
                "rules.json:2: roles: a role's name must be a string of letters, digits, -, _ and .",
                "rules.json:3: unknown member 'colections'; did you mean 'collections'?",
                "rules.json:6: collections.todos.update: 'usr' is not a role; did you mean 'user'?",
                "rules.json:7: collections.todos.create: 'creator' has no effect here, because there is no creator yet; "
                    + "use 'signed-in'",
                "rules.json:8: collections.todos.delete: 'nobody' cannot be combined with other roles",
                "rules.json:9: collections.todos.read: must be a role, or an array of roles, as \"user\"",
                "rules.json:10: collections.todos: unknown member 'reed'; did you mean 'read'?",
                "rules.json:12: collections.todos.fields.title.type: 'strng' is not a type; did you mean 'string'?",
                "rules.json:13: collections.todos.fields.done.maxLength: requires a string or an array, and this is a boolean",
                "rules.json:14: collections.todos.fields.state.enum: has a value that is not a string",
                "rules.json:15: collections.todos.fields.tags.maxLength: must be an integer of at least 0",
                "rules.json:16: collections.todos.fields.kind.enum: must be an array of the allowed values",
                "rules.json:17: collections.todos.fields: duplicate member 'kind'",
                "rules.json:18: collections.todos.fields.by.write: 'somebody' is not a role; declare custom roles in 'roles' at the "
                    + "top level",
                "rules.json:20: collections.todos.otherFields: must be true or false",
                "rules.json:21: collections.todos.limits.documents: must be an integer of at least 1",
                "rules.json:22: collections.todos.limits.writesPerSecond: must be a number greater than 0",
                "rules.json:23: collections.todos.limits.writesAtOnce: must be an integer of at least 1",
                "rules.json:25: collections: 'a/b' is not a valid name; use letters, digits, -, _ and ., and * for any",
                "rules.json:26: collections.log-*: must be an object",
                "rules.json:29: rooms.chat.join: 'no-creator' has no effect here, because there is no creator yet; "
                    + "use 'signed-in'",
                "rules.json:30: rooms.chat.publish: must not be empty; write \"nobody\"",
                "rules.json:31: rooms.chat.members: must be an integer of at least 1",
            ])
    }

    @Test("a value that no document can have is reported with its line")
    func impossibleValues() {
        let rules = #"""
            { "collections": { "todos": { "fields": { "a": {
              "enum": [1e999,
                {"b":1, "b":2}, 1.0]
            } }, "limits": { "documents": 1e999 } } } }
            """#
        #expect(
            problems(rules) == [
                "rules.json:2: collections.todos.fields.a.enum: the number 1e999 is outside the range of a double",
                "rules.json:3: collections.todos.fields.a.enum: duplicate member 'b'",
                "rules.json:4: collections.todos.limits.documents: must be an integer of at least 1",
            ])
    }

    @Test(
        "entries that exclude their intended users are reported with their lines; intentionally closed ones are not",
        arguments: [
            ("{}", nil), (#"{"collections":{"*":{"read":"nobody","create":"nobody"}}}"#, nil),
            (
                #"{"collections":{"a":{"create":"user"},"*":{"read":"nobody","create":"nobody"}}}"#,
                "1: collections.a: documents can be created (user), but no client can read them (collections.*.read)"
            ),
            (
                #"{"collections":{"a":{"create":"user","read":"signed-in"},"*":{"read":"nobody","create":"nobody"}}}"#,
                nil
            ),
            (
                "{\"collections\":{\"*\":{\"read\":\"nobody\",\"create\":\"nobody\"},\n\"a-*\":{\"otherFields\":false}}}",
                "2: collections.a-*: no client can create documents (collections.*.create) or read them (collections.*.read)"
            ),
            (#"{"collections":{"a":{"read":"nobody","create":"nobody"}}}"#, nil),
            (
                #"{"collections":{"a":{"read":"creator"}}}"#,
                "1: collections.a: documents of clients that are not signed in can be read by no client (collections.a.read); "
                    + "set create to 'signed-in', or add 'no-creator' to read"
            ),
            (#"{"collections":{"a":{"read":["creator","no-creator"]}}}"#, nil),
            (#"{"collections":{"a":{"read":"creator","create":"signed-in"}}}"#, nil),
            (#"{"roles":["editor"],"collections":{"a":{"read":"editor","create":"user"}}}"#, nil),
            (
                #"{"rooms":{"chat":{"publish":"user"},"*":{"join":"nobody"}}}"#,
                "1: rooms.chat: no client can join: 'join' is absent, and a more general entry has 'nobody'"
            ), (#"{"rooms":{"chat":{"join":"nobody"},"*":{"join":"nobody"}}}"#, nil),
        ])
    func warnings(text: String, warning: String?) throws {
        let book = try RulesFile(json: Array(text.utf8), file: "r.json")
        #expect(book.warnings.map(\.description) == [warning].compactMap(\.self).map { "r.json:" + $0 })
    }

    @Test("a missing or oversized file, or a folder, is a problem of the file")
    func files() throws {
        let folder = try TemporaryFolder()
        for (path, problem) in [
            (folder.path + "/none.json", "cannot be read (No such file or directory)"),
            (folder.path, "cannot be read (Is a directory)"),
        ] {
            let error = try #require(throws: RulesFileError.self) { try RulesFile(contentsOfFile: path) }
            #expect(error.description == "\(path): \(problem)")
        }
        let large = folder.path + "/large.json"
        try Data(repeating: 0x20, count: RulesFile.maximumFileLength + 1).write(to: URL(fileURLWithPath: large))
        let error = try #require(throws: RulesFileError.self) { try RulesFile(contentsOfFile: large) }
        #expect(error.description == "\(large): has more than 1048576 bytes")
    }

    @Test("the defaults are a file with the rules that apply without one")
    func defaults() throws {
        let book = try RulesFile(json: Array(RulesFile.defaults.utf8))
        let documents = [Document(id: "a", fields: [:], creator: "ada"), Document(id: "b", fields: [:])]
        for principal in [nil, Principal(id: "ada"), Principal(id: "eve", roles: ["user"])] {
            for document in documents {
                for action in CollectionAction.allCases {
                    let without = CreatorRules().isAllowed(principal, action, document, in: "todos")
                    #expect(book.isAllowed(principal, action, document, in: "todos") == without)
                    #expect(RulesFile().isAllowed(principal, action, document, in: "todos") == without)
                }
            }
            for book in [book, RulesFile()] {
                #expect(book.readerGroup(for: principal, in: "todos") == .allCallers)
                #expect(book.canJoin(principal, "chat-lobby") && book.canPublish(principal, "t", in: "chat-lobby"))
                #expect(!book.canList(principal, "chat-"))
                #expect(book.memberLimit(of: "chat-lobby", 7) == 7)
            }
        }
        let limits = book.limits(of: "todos", CollectionLimits())
        #expect(limits.documentsPerCollection == 10_000 && limits.writesPerConnectionAndCollection == nil)
    }
}
